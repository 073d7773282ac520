"""What the scanner must find, and what it must leave alone, as it stands in chats and files.

Nothing here looks like a secret before it is built: ``·`` joins pieces and goes away, ``{A36}``
becomes 36 random characters (A letters and digits, L lower case and digits, U capitals and digits,
H hex, B base64, T letters, digits, ``_`` and ``-``), ``{b64:text}`` the base64 of the text. What
must be hidden stands between ``«`` and ``»``; everything else must stay as it is.
"""

from __future__ import annotations

import base64
import random
import re
import string

_ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "L": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "H": "0123456789abcdef",
    "B": string.ascii_letters + string.digits + "+/",
    "T": string.ascii_letters + string.digits + "_-",
}
_ARMOUR = "-" * 5


def build(text: str, seed: int = 7) -> str:
    """``text`` with its pieces joined and its random parts filled in, always the same."""
    chance = random.Random(f"{seed}:{text}")

    def filled(found: re.Match[str]) -> str:
        alphabet = _ALPHABETS[found[1]]
        body = [chance.choice(alphabet) for _ in range(int(found[2]))]
        body[0] = chance.choice([c for c in alphabet if c.isalnum()])
        body[-1] = chance.choice([c for c in alphabet if c.isalnum()])
        return "".join(body)

    text = text.replace("·", "").replace("{ARMOUR}", _ARMOUR)
    text = re.sub(r"\{b64:([^}]*)\}", lambda m: base64.b64encode(m[1].encode()).decode(), text)
    return re.sub(r"\{([ALUHBT])(\d+)\}", filled, text)


def plain(built: str) -> str:
    """What the scanner is given: the text without its marks."""
    return built.replace("«", "").replace("»", "")


def hidden(built: str) -> list[str]:
    """What must be gone."""
    return re.findall("«(.*?)»", built, re.DOTALL)


def without(built: str) -> str:
    """What must be left, with ``[REDACTED]`` for each secret whatever its kind."""
    return re.sub("«.*?»", "[REDACTED]", built, flags=re.DOTALL)


#: Each line is one text; a name is only for the reader of a failure.
CAUGHT: dict[str, str] = {
    # -- key blocks
    "pem rsa": (
        "the key is\n«{ARMOUR}BEGIN RSA PRIVATE· KEY{ARMOUR}\n{B64}\n{B64}\n{ARMOUR}END "
        "RSA PRIVATE· KEY{ARMOUR}»\nok?"
    ),
    "pem encrypted": (
        "«{ARMOUR}BEGIN ENCRYPTED PRIVATE· KEY{ARMOUR}\n{B64}\n{ARMOUR}END ENCRYPTED "
        "PRIVATE· KEY{ARMOUR}»\n"
    ),
    "openssh": (
        "cat id_ed25519\n«{ARMOUR}BEGIN OPENSSH PRIVATE· KEY{ARMOUR}\nb3BlbnNzaC1r{B58}\n"
        "{ARMOUR}END OPENSSH PRIVATE· KEY{ARMOUR}»"
    ),
    "pgp": (
        "«{ARMOUR}BEGIN PGP PRIVATE· KEY BLOCK{ARMOUR}\n\nlQdGBF{B58}\n={B4}\n{ARMOUR}END "
        "PGP PRIVATE· KEY BLOCK{ARMOUR}» done"
    ),
    "pgp without end": (
        "gpg said: «{ARMOUR}BEGIN PGP PRIVATE· KEY BLOCK{ARMOUR}\n\nlQdGBF{B58}\n{B64}»"
    ),
    "pem in json": (
        '"private_key": "«{ARMOUR}BEGIN PRIVATE· KEY{ARMOUR}\\n{B64}\\n{ARMOUR}END '
        'PRIVATE· KEY{ARMOUR}»\\n",'
    ),
    "pem in base64": "  tls.key: «LS0tLS1CRUdJTi·BSU0EgUFJJVkFURSBLRVktLS0tLQo{B80}»\n  tls.crt: x",
    "ssh2": (
        "«---- BEGIN SSH2 ENCRYPTED PRIVATE· KEY ----\n{B64}\n---- END SSH2 ENCRYPTED "
        "PRIVATE· KEY ----»"
    ),
    "putty": "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: «1\n{B43}=»\nPrivate-MAC: x",
    "openvpn": (
        "«{ARMOUR}BEGIN OpenVPN Static key V1{ARMOUR}\n{H32}\n{ARMOUR}END OpenVPN Static "
        "key V1{ARMOUR}»"
    ),
    # -- models
    "anthropic": "export ANTHROPIC_API_KEY=«sk-·ant-api03-{T93}AA»",
    "openai project": "OPENAI_API_KEY=«sk-·proj-{T60}»",
    "openai service": (
        "curl -H 'Authorization: Bearer «sk-·svcacct-{T48}»' https://api.example.com/v1/models"
    ),
    "openai old": "it works with «sk-·{A48}» but not without",
    "openrouter": "key is «sk-·or-v1-{H64}».",
    "huggingface": "huggingface-cli login --token «hf·_{A34}»",
    "replicate": "REPLICATE=«r8·_{A37}»",
    "groq": "use «gsk·_{A52}» for groq",
    "langsmith": "LANGCHAIN: «lsv2·_pt_{H32}_{H10}»",
    # -- code hosts and registries
    "github classic": "git clone https://«ghp·_{A36}»@github.com/x/y",
    "github others": "«gho·_{A36}» «ghu·_{A36}» «ghs·_{A36}» «ghr·_{A36}»",
    "github fine": "gh auth login --with-token <<< «github·_pat_{A22}_{A59}»",
    "github repeated": "GH: «ghp·_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA»",
    "gitlab": "PRIVATE-TOKEN: «glpat·-{T20}»",
    "gitlab runner": "gitlab-runner register «glrt·-{T20}» then «gldt·-{T20}»",
    "gitlab trigger": "«glptt·-{H40}», «gloas·-{H64}», «glsoat·-{T20}», «glft·-{T20}»",
    "bitbucket": "app password «ATBB·{A32}»",
    "jira": "JIRA «ATATT3·xFfGF0{T60}={U8}»",
    "npm": "//registry.npmjs.org/:_authToken=«npm·_{A36}»",
    "npm auth": "_auth=«{b64:bob:tr0ub4dor}»",
    "pypi": "password = «pypi·-AgEIcHlwaS5vcmc{T60}»",
    "rubygems": ":rubygems_api_key: «rubygems·_{H48}»",
    "crates": 'token = "«cio·{A32}»"',
    "docker hub": "docker login -u bob --password-stdin <<< «dckr·_pat_{T27}»",
    "docker config": '{"auths": {"https://index.docker.io/v1/": {"auth": "«{b64:bob:hunter22}»"}}}',
    "docker config json": ".dockerconfigjson: «eyJhdXRocyI6{B60}=»",
    "linear": "«lin·_api_{A40}»",
    "notion": "NOTION «ntn·_{A46}» and the older «secret·_{A43}»",
    "figma": "figma: «figd·_{T40}»",
    "postman": "X-Api: «PMAK·-{H24}-{H34}»",
    "circleci": "Circle «CCIPAT·_{A22}_{H40}»",
    "sonar": "sonar-scanner -Dsonar.login=«sqp·_{H40}»",
    # -- clouds
    "aws id": "aws configure set aws_access_key_id «AKIA·{U16}»",
    "aws session": "AWS_ACCESS_KEY_ID=«ASIA·{U16}»",
    "aws secret": "aws_secret_access_key = «{B40}»\nregion = eu-west-1",
    "aws secret env": "export AWS_SECRET_ACCESS_KEY='«{B40}»'",
    "aws secret json": '{"SecretAccessKey": "«{B40}»", "Region": "x"}',
    "aws session token": "AWS_SESSION_TOKEN=«IQoJb3·JpZ2luX2Vj{B200}==»",
    "google api": "https://maps.example.com/js?key=«AIza·Sy{T33}»&v=3",
    "google oauth secret": '"client_secret":"«GOCSPX·-{T28}»"',
    "google refresh": "refresh «1//·0{T62}» stored",
    "google access": "gcloud: «ya29·.a0{T120}»",
    "azure storage": (
        "DefaultEndpointsProtocol=https;AccountName=demo;AccountKey=«{B86}==»;EndpointSuffi"
        "x=core.windows.net"
    ),
    "azure sas": "https://demo.blob.core.windows.net/c?sv=2023-01-03&sig=«{A40}%3D»&se=2027",
    "azure client": "AZURE_CLIENT «{A3}8Q·~{A34}» expires",
    "azure bus": (
        "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«{B43}=»"
    ),
    "digitalocean": "doctl auth init -t «dop·_v1_{H64}»",
    "heroku": "HEROKU «HRKU·-AA{T58}»",
    "heroku uuid": "HEROKU_API_KEY=«{H8}-{H4}-{H4}-{H4}-{H12}»",
    "netlify": "NETLIFY=«nfp·_{A36}»",
    "vercel": "vercel «vcp·_{A56}»",
    "vercel name": "VERCEL_TOKEN=«{A24}»",
    "cloudflare name": "CLOUDFLARE_API_TOKEN: «{T40}»",
    "databricks": "host: x\ntoken = «dapi·{H32}»",
    "supabase": "«sbp·_{H40}»",
    "fly": "FLY «fm2·_{B90}»",
    "terraform": 'credentials "app.terraform.io" { x = "«{A14}.atlasv1.{A67}»" }',
    "vault": "vault login «hvs·.{T90}»",
    "doppler": "doppler «dp·.pt.{A43}» and «dp·.st.dev_main.{A43}»",
    "pulumi": "«pul·-{H40}»",
    "tailscale": "tailscale up --authkey «tskey·-auth-{A17}-{A32}»",
    # -- money, messages, watching
    "stripe": "Stripe.api = «sk·_live_{A24}» # «rk·_live_{A24}»",
    "stripe hook": "endpoint «whsec·_{A32}»",
    "shopify": "«shpat·_{H32}» for the shop",
    "square": "«sq0atp·-{T22}» «sq0csp·-{T43}»",
    "twilio": "TWILIO_AUTH_TOKEN=«{H32}»\nsid «SK·{H32}»",
    "sendgrid": "«SG·.{T22}.{T43}»",
    "mailgun": "mailgun: «key·-{H32}»",
    "mailchimp": "mc «{H32}-us14»",
    "telegram": "bot 7203948571:«AA·{T33}»",
    "discord": "client.login('«MTE4·{A22}.G{A5}.{T38}»')",
    "discord hook": "https://discord.com/api/webhooks/1184739201847392018/«{T68}»",
    "slack": "«xoxb·-{H12}-{H12}-{A24}» or «xapp·-1-A0{U9}-{H13}-{H64}»",
    "slack hook": "curl https://hooks.slack.com/«services/·T{U8}/B{U8}/{A24}»",
    "grafana": "«glsa·_{A32}_{H8}»",
    "sentry": "SENTRY «sntrys·_{B60}»",
    "newrelic": "«NRAK·-{U27}»",
    # -- headers and URLs
    "jwt": "id_token=«eyJ·hbGciOiJIUzI1NiJ9.eyJ·zdWIiOiIxMjM0In0.{T43}»",
    "bearer": "> authorization: Bearer «{A40}»",
    "basic": "Authorization: Basic «{b64:alice:wonderland}»",
    "x-api-key": "-H 'X-API-Key: «{A32}»' -d @f",
    "authorization token": "Authorization: token «{H40}»",
    "cookie": "Cookie: session=«{A40}»; theme=dark",
    "postgres url": "DATABASE_URL=postgres://app:«s3cr3t·pw»@db.internal:5432/app?sslmode=require",
    "redis url": "redis://:«correct·horse»@cache:6379/0",
    "mongo url": "mongodb+srv://admin:«P%40ss·w0rd»@cluster0.example.net/",
    "amqp url": "amqp://guest2:«rabbit·99»@mq//",
    "token as user": "git remote set-url origin https://«{A32}»@git.example.com/x.git",
    "user and token": "https://oauth2:«{A20}»@gitlab.example.com/x.git",
    # -- files of passwords
    "netrc": "machine api.heroku.com login bob@example.com password «s3cr3t·pw»",
    "netrc lines": "machine git.example.com\n  login bob\n  password «tr0ub4·dor»\nmachine b",
    "pgpass": "db.example.com:5432:app:bob:«s3cr3t·pw»",
    "pgpass any": "*:*:*:postgres:«hunter·22»",
    "my.cnf": "[client]\nuser=root\npassword=«hunter·22»\n",
    "credentials": "[default]\ntoken = «{A30}»",
    # -- command lines
    "mysql": "mysql -u root -p«hunter·22» app < dump.sql",
    "mysqldump": "mysqldump -h db -uroot -p'«S3cr·et!»' app > dump.sql",
    "flag": "createuser --password «hunter·22» bob",
    "flag equals": "wget --http-user=bob --http-password=«hunter·22» https://x.example/",
    "curl user": "curl -u admin:«s3cr3t·pw» https://x.example",
    "curl long": "curl --user 'bob:«corr3ct·horse»' https://x.example/api",
    "sshpass": "sshpass -p '«s3cr3t·pw»' ssh root@host",
    "redis-cli": "redis-cli -h cache -a «hunter·22» ping",
    "docker login": "docker login -u bob -p «hunter·22» registry.example.com",
    "openssl": "openssl rsa -in k.pem -passin pass:«hunter·22»",
    "pgpassword": "PGPASSWORD=«correct·horse» psql -h db -U app",
    "kubectl": "kubectl create secret generic db --from-literal=password=«S3cr3t·pw»",
    "helm": "helm upgrade x ./x --set auth.password=«hunter·22»,replicas=2",
    # -- assignments
    "export pass": "export DB_PASS=«correct·horse»",
    "export digits": "export DB_PASS=«hunter·2»",
    "env brackets": "DB_PASSWORD=«p@ss(w0·rd)x»",
    "env file": "SMTP_HOST=mail\nSMTP_PASS=«abcd·efgh»\nSMTP_PORT=25",
    "env words": "ADMIN_PASSWORD=«correct-horse-·battery»",
    "compose": "      POSTGRES_PASSWORD: «sw0rd·fish9»\n      POSTGRES_DB: app",
    "yaml": "database:\n  password: «sword·fish»\n  host: db",
    "yaml quoted": '  password: "«pa55·-word-quoted»"',
    "toml": "secret_key = '«{A50}»'",
    "json": '{"user": "bob", "password": "«correct·horse»"}',
    "json escaped": '{\\"api·Key\\": \\"«q1w2e3·r4t5y6»\\"}',
    "camel": "dbPass: '«zq81·kLm2»',",
    "pass equals": "user=bob pass=«hunter·22» db=x",
    "pass colon": "pass: «hunter·22»",
    "pw": "user: bob / pw: «hunter·22»",
    "arrow": "password -> «hunter·22»",
    "fat arrow": "'password' => '«correct·horse»',",
    "unicode arrow": "admin password → «hunter·22»",
    "digits": "the wifi password: «84920·173»",
    "uuid": "api_key: «{H8}-{H4}-{H4}-{H4}-{H12}»",
    "connection string": "Server=db;Database=app;User Id=sa;Password=«Str0ng·Pass!»;Encrypt=true",
    "django": "SECRET_KEY = '«django-insecure-{A50}»'",
    "laravel": "APP_KEY=«base64:{B43}=»",
    "php": "define('DB_PASSWORD', '«c0rrect·horse»');",
    "wireguard": "PrivateKey = «{B43}=»\nAddress = 10.0.0.2/32",
    "k8s": "kind: Secret\ndata:\n  password: «{b64:supersecret1}»\n  username: YWRtaW4=",
    "query": "https://x.example/login?user=bob&password=«hunter·22»&next=/",
    "csrf cookie": "csrftoken=«{A64}»",
    # -- sentences
    "is": "The database password is «hunter·22», use it",
    "is quoted": 'my password is "«correct·horse»" everywhere',
    "is for": "the password for the staging box is «tr0ub4·dor»",
    "was": "the old token was «{A24}»",
    "near": "here is the deploy token you asked for:\n\n«{A32}»\n\nplease keep it",
    "creds": "creds: admin / «S3cr3t·pw»",
    "creds colon": "staging creds = bob:«hunter·22»",
    "arabic": "كلمة السر: «hunter·22x»",
    "arabic is": "كلمة المرور هي «hunter·22x» لا تنسها",
    "arabic for": "كلمة المرور لقاعدة البيانات هي «hunter·22x»",
    "arabic code": "الرقم السري = «84x·920»",
    "french": "le mot de passe est «s3same·ouvre»",
    "chinese": "数据库密码:«hunter·22x»",
    "chinese is": "数据库密码是 «hunter·22x»，请不要外传",
    "chinese is, no space": "密码为«hunter·22x»。",
    "chinese is, colon": "口令是：«hunter·22x»",
    "chinese equals": "密钥＝«hunter·22x»",
    "japanese is": "パスワードは «hunter·22x» です",
    "korean is": "비밀번호는 «hunter·22x»",
    "passphrase": "passphrase = «correct horse· battery staple»",
    "passphrase quoted": 'PASSPHRASE="«correct horse· battery»"',
    "passphrase in json": '{"passphrase": "«correct horse· battery staple»"}',
    "passphrase colon": "ssh pass-phrase: «correct horse· battery staple»\nport 22",
    "russian": "пароль: «hunter·22x»",
    # -- seeds
    "totp": "TOTP secret: «JBSWY3DP·EHPK3PXP»",
    "totp groups": "the 2FA seed is «jbsw y3dp· ehpk 3pxp»",
    "otpauth": "otpauth://totp/x:bob?secret=«JBSWY3DP·EHPK3PXP»&issuer=x",
    "hex key": "wallet private key: «{H64}»",
    "hex key 0x": "PRIVATE_KEY=«0x{H64}»",
    "mnemonic": (
        "seed phrase: «legal winner thank year wave sausage worth useful legal winner thank yellow»"
    ),
    "age": "# created\n«AGE-SECRET-·KEY-1{U58}»",
    "ansible": "ansible_become_pass: «hunter·22»",
    "gradle": "signing.password=«hunter·22»",
}

#: Must stay as they are, each of them.
LEFT: tuple[str, ...] = (
    "there is a memory leak in the token cache",
    "Token: see-the-wiki-page",
    "ALTER TABLE users ADD COLUMN password_hash VARCHAR(255)",
    "token_count: 4096",
    "max_tokens=128000, temperature=0.2",
    "session 01930c5e-7f3a-7c1e-9b3d-2f6a1c4e8d90 used the token cache",
    "the token fix is commit 3f2a9c1d5e7b8a6f4c2d1e0b9a8f7c6d5e4b3a2f",
    "sha256:{H64} secret-operator:v1.2.3",
    "image: registry.example.com/secret-manager@sha256:{H64}",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA{B200}",
    "password: <your-password>",
    "api_key: YOUR_API_KEY",
    "api_key = 'your-api-key-here'",
    "token: xxxxxxxxxxxxxxxx",
    "password=${DB_PASSWORD}",
    "export TOKEN=$DB_PASS",
    'token = os.environ["GITHUB_TOKEN"]',
    "token = os.getenv('API_TOKEN2')",
    "const token = process.env.API_TOKEN2;",
    "password: {{ secret }}",
    "password: ${{ secrets.DB_PASSWORD2 }}",
    "PASSWORD=changeme",
    "password: change-me-please",
    "aws_access_key_id = AKIA·IOSFODNN7EXAMPLE",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPx·RfiCYEXAMPLEKEY",
    "the secret is to rest the dough overnight",
    "pass the token to the parser2 and go on",
    "tests pass: 1284, fail: 3",
    "all tests pass (python3.12)",
    "src/components/TokenInput2/UserToken2.tsx",
    "secrets/2024/05/Password-Reset-v2.md",
    "password-manager@1.2.3-beta.4",
    "http://localhost:8080/token?next=/a@b",
    "curl --url http://host:8080/x -o out",
    "docker run -p 8080:80 -u 1000:1000 mysql:8 --port 3306",
    "mail bob@example.com about the password reset",
    "password: bob@example.com",
    "call +1 415 555 0100 about the token",
    ".token-3f2a9c1d { color: #a1b2c3 }",
    '"integrity": "sha512-{B86}=="',
    '    "js-tokens": "^4.0.0",\n    "integrity": "sha512-{B86}=="',
    (
        'js-tokens@^4.0.0:\n  version "4.0.0"\n  resolved '
        '"https://r.example.com/js-tokens-4.0.0.tgz#{H40}"'
    ),
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{B42} bob@host",
    "{ARMOUR}BEGIN PUBLIC KEY{ARMOUR}\n{B64}\n{ARMOUR}END PUBLIC KEY{ARMOUR}",
    "{ARMOUR}BEGIN CERTIFICATE{ARMOUR}\n{B64}\n{ARMOUR}END CERTIFICATE{ARMOUR}",
    "tls.crt: {b64:-----BEGIN CERTIFICATE-----MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0}",
    "def login(user: str, password: str) -> Token2:",
    "interface Auth { token: string; password?: string }",
    "type Secret2 = { password: string | null }",
    "SELECT * FROM t WHERE token = ? AND password = :password",
    "UPDATE users SET password = @password2 WHERE id = 1",
    "client = Client(token=access_token, secret=client_secret)",
    "connect(user=user, password=password2)",
    "login(username, password=settings.DB_PASSWORD)",
    "password = get_password2(user)",
    "password = hashlib.sha256(salt2).hexdigest()",
    "self.token = token2",
    "let token = tokens[i1];",
    "key: value\nother: thing2",
    "kubectl get secret my-app-token-x7k2p -o yaml",
    "secretName: my-tls-secret-2024",
    "secretKeyRef:\n  name: db\n  key: password",
    "npm install @auth/token-bucket2 jsonwebtoken@9.0.2",
    "import { TokenBucket2 } from 'rate-token-limiter'",
    "the password must have 8 to 64 characters",
    '{"password": "This field is required."}',
    '{"token_type": "Bearer", "expires_in": 3600}',
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "Bearer authentication-is-required-here",
    "op://Private/database1/password",
    "password: op://Private/database1/password",
    "password_file: /run/secrets/db_password1",
    "password = /run/secrets/db1",
    "DB_PASSWORD_FILE=/run/secrets/db1",
    "API key rotation happens in 2026Q3",
    "primary key: order_id2",
    "cache key: user42profile",
    "sort keys: name1, name2",
    "the monkey: bananas22",
    'input type="password" name="password" placeholder="Password"',
    "--password-stdin <token.txt",
    "postgres://user:password@localhost:5432/db",
    "postgres://${USER}:${PASS}@db/app",
    "https://user:<password>@host/x",
    "git@github.com:org/token-repo2.git",
    "https://github.com/org/repo/blob/{H40}/secrets.py#L12",
    "the machine learning login page, password field first",
    "machine learning models tokenise text2",
    "5432:5432 is the port, user:app",
    "otp login page and the 2FA screen with code words from that list",
    "the seed is 42 and the second 1234567",
    "random seed: 20240501",
    "mnemonic: a short word that helps the reader to remember how the thing goes on",
    "tokenizer: gpt2-medium",
    "token budget: 100k",
    "secret santa is on 12dec",
    "bypass=cache2x and compass: north2west",
    "sk-learn and sk-test-suite are package names",
    "risk-ant-colony, task-proj-planning-document-2026",
    "class AccessTokenResponse2(BaseModel):",
    "OAuth2PasswordBearer(tokenUrl='/token')",
    "password: SecretStr",
    "password: PasswordField",
    "passwords are hashed with argon2id",
    "token: Optional[str] = None",
    "token?: Promise<string>",
    "compile pass = inline2 then dce",
    "The token is expired",
    "Wrong password: authentication failed",
    "password: required, min 8",
    "the api key is in 1Password under dev2",
    "أضف كلمة المرور إلى الإعدادات",
    "كلمة السر محفوظة في الخزنة",
    "استخدم pnpm افتراضياً",
    "密码是必填的",
    "密码是 8 位以上的字符",
    "密码是8位以上数字",
    "密码是 base64 编码的",
    "密码：必填，请输入",
    "口令是什么",
    "パスワードは必須です",
    "비밀번호는 필수입니다",
    "passphrase: ask the user for it",
    "passphrase: the words that protect a key",
    "passphrase: kept in the vault of the team",
    'passphrase = input("Enter your passphrase: ")',
    '"passphrase": "optional signing passphrase"',
    "passphrase: see the onboarding page",
    "passphrase: rotated once yearly",
    "the passphrase = words that only you know",
    "public key: ssh-rsa AAAAB3NzaC1yc2E{B60}",
    'ETag: "{H32}"',
    "trace id {H32} span {H16}",
    "X-Request-Id: {H32}",
    "build {H40} deployed, token refreshed",
    "blob {H40}\ttests/token_test.py",
    "\\u001b[31mtoken error\\u001b[0m at line2",
    "basic understanding of internationalization2",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "the_quick_brown_fox_jumps_over_the_lazy_dog_1234",
    "test_that_a_token_is_refreshed_when_the_password_changes_2",
    "s3://bucket/secret-backups/2024-05-01.tar.gz",
    "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf",
    "password=***** user=bob",
    "password: [REDACTED:assignment]",
)
