"""The tokens of providers, known by the literal their makers start them with.

Sources: the providers' own documents on the format of their tokens. A shape's name is the label
of a redaction; ``docs/scanner.md`` lists them.
"""

from __future__ import annotations

from memoryd.memory.secret_shapes import Shape, any_of, inside, shape
from memoryd.memory.secret_values import has_letter_and_digit, has_private_key, is_mixed, is_real

_TAIL = r"[A-Za-z0-9_-]"
_LONG = rf"{_TAIL}{{16,}}"

#: Secrets wherever they stand, each with a run of ``RUN`` token characters in its literal's run.
IN_RUNS: tuple[Shape, ...] = (
    # -- models
    shape("anthropic", "sk-ant-", rf"sk-ant-{_TAIL}{{10,}}"),
    shape(
        "openai",
        "sk-",
        rf"sk-(?:(?:proj|svcacct|admin|service|None|or-v1|or|lf|kimi|cp)-{_TAIL}{{16,}}"
        r"|[A-Za-z0-9]{20,})",
    ),
    shape("huggingface", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    shape("groq", "gsk_", r"gsk_[A-Za-z0-9]{20,}"),
    shape("xai", "xai-", r"xai-[A-Za-z0-9]{20,}"),
    shape("perplexity", "pplx-", r"pplx-[A-Za-z0-9]{20,}"),
    shape("replicate", "r8_", r"r8_[A-Za-z0-9]{30,}"),
    shape("langsmith", "lsv2_", rf"lsv2_(?:pt|sk)_{_LONG}"),
    shape("tavily", "tvly-", rf"tvly-{_LONG}"),
    shape("pinecone", "pcsk_", rf"pcsk_{_TAIL}{{30,}}"),
    shape("elevenlabs", "sk_", r"sk_[a-f0-9]{40,}"),
    # -- code
    inside("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh._[A-Za-z0-9]{30,}"),
    inside("github", "github_pat_", r"github_pat_\w{22,}"),
    shape(
        "gitlab",
        "glpat- gldt- glrt- glrtr- glptt- glcbt- glsoat- gloas- glft- glimt- glagent- glffct-",
        r"gl[a-z]{2,5}-[A-Za-z0-9_.-]{15,}[A-Za-z0-9_-]",
    ),
    shape("gitlab", "GR1348941", rf"GR1348941{_LONG}"),
    shape("atlassian", "ATATT3 ATCTT3 ATBB", r"AT(?:[AC]TT3|BB)[A-Za-z0-9_=-]{20,}"),
    shape("npm", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    shape("pypi", "pypi-", rf"pypi-{_TAIL}{{40,}}"),
    shape("rubygems", "rubygems_", r"rubygems_[a-f0-9]{40,}"),
    shape("crates", "cio", r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])", has_letter_and_digit),
    shape("nuget", "oy2", r"oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    shape("clojars", "CLOJARS_", r"CLOJARS_[a-f0-9]{40,}"),
    shape("docker", "dckr_pat_ dckr_oat_", rf"dckr_.at_{_TAIL}{{20,}}"),
    shape("jfrog", "AKCp cmVmdGtuOj", r"(?:AKCp|cmVmdGtuOj)[A-Za-z0-9]{50,}"),
    shape("sonar", "sqp_ squ_ sqa_", r"sq._[a-f0-9]{40}"),
    shape("circleci", "CCIPAT_ CCIPRJ_", rf"CCIP..._?{_LONG}"),
    shape("buildkite", "bkua_", r"bkua_[a-z0-9]{30,}"),
    shape("sourcegraph", "sgp_", r"sgp_(?:[A-Za-z0-9]{16}_|local_)?[a-f0-9]{40}"),
    shape("postman", "PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    shape("figma", "figd_ figo_", rf"fig._{_LONG}"),
    shape("linear", "lin_api_ lin_oauth_", r"lin_[a-z]+_[A-Za-z0-9]{30,}"),
    shape("notion", "ntn_", r"ntn_[A-Za-z0-9]{40,}"),
    shape("notion", "secret_", r"secret_[A-Za-z0-9]{43}(?![A-Za-z0-9])"),
    shape("airtable", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    shape("readme", "rdme_", r"rdme_[a-z0-9]{60,}"),
    # -- clouds and hosts
    shape("aws-id", "AKIA ASIA ABIA", r"A[KSB]IA[A-Z0-9]{16}(?![A-Za-z0-9])", is_real),
    shape(
        "aws-secret",
        "AKIA ASIA",
        r"A[KS]IA[A-Z0-9]{16}[^A-Za-z0-9]{1,8}(?:[A-Za-z_]{1,24}[^A-Za-z0-9]{1,8}){0,5}"
        r"(?P<secret>(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/])",
        is_real,
    ),
    shape("google", "AIza", rf"AIza{_TAIL}{{35,}}"),
    shape("google", "GOCSPX-", rf"GOCSPX-{_TAIL}{{20,}}"),
    shape("alibaba", "LTAI", r"LTAI[A-Za-z0-9]{16,24}(?![A-Za-z0-9])", has_letter_and_digit),
    shape("digitalocean", "dop_v1_ doo_v1_ dor_v1_", r"do._v1_[a-f0-9]{40,}"),
    shape("heroku", "HRKU-", rf"HRKU-{_TAIL}{{30,}}"),
    shape("netlify", "nfp_ nfc_ nfo_ nfb_ nfu_", r"nf._[A-Za-z0-9]{30,}"),
    shape("vercel", "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_", r"v[a-z_]+_[A-Za-z0-9_]{24,}"),
    shape("cloudflare", "cfut_ cfat_ cfk_", r"cf[a-z]+_[A-Za-z0-9_-]{36,}"),
    shape("render", "rnd_", r"rnd_[A-Za-z0-9]{24,}"),
    shape("supabase", "sbp_ sb_secret_", rf"sb(?:p|_secret)_{_TAIL}{{20,}}"),
    shape("planetscale", "pscale_", rf"pscale_(?:tkn|pw|oauth)_{_LONG}"),
    shape("neon", "napi_", r"napi_[a-z0-9]{40,}"),
    shape("databricks", "dapi", r"dapi[a-f0-9]{32}(?:-\d)?"),
    shape("pulumi", "pul-", r"pul-[a-f0-9]{40}"),
    shape("tailscale", "tskey-", rf"tskey-[a-z]+-{_LONG}"),
    shape("prefect", "pnu_ pnb_", r"pn[ub]_[A-Za-z0-9]{30,}"),
    # -- money and shops
    shape("stripe", "sk_live_ sk_test_ rk_live_ rk_test_", r"[sr]k_\w{4}_[A-Za-z0-9]{10,}"),
    shape("shopify", "shpat_ shpca_ shppa_ shpss_ shptka_", r"shp[a-z]+_[a-fA-F0-9]{32,}"),
    shape("square", "sq0atp- sq0csp- sq0idp-", rf"sq0[a-z]+-{_TAIL}{{20,}}"),
    shape("square", "EAAA", rf"EAAA{_TAIL}{{60}}(?!{_TAIL})"),
    shape("facebook", "EAA", r"EAA[A-Za-z0-9]{90,}"),
    shape("paystack", "FLWSECK", rf"FLWSECK(?:_TEST)?-{_LONG}"),
    shape("easypost", "EZAK EZTK", r"EZ[AT]K[A-Za-z0-9]{50,}"),
    # -- messages
    inside("slack", "xox", r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}"),
    shape("slack", "xapp-", r"xapp-[0-9]-[A-Za-z0-9-]{10,}"),
    shape("twilio", "SK", r"SK[a-f0-9]{32}(?![A-Za-z0-9])"),
    shape("mailgun", "key-", r"key-[a-f0-9]{32}(?![A-Za-z0-9])"),
    inside("mailchimp", "-us", r"[a-f0-9]{32}-us\d{1,2}(?!\w)", back=32),
    shape("brevo", "xkeysib-", r"xkeysib-[a-f0-9]{40,}-[A-Za-z0-9]{10,}"),
    shape(
        "discord",
        "MT MD Mj Mz ND NT Nj Nz OD OT",
        rf"[MNO][A-Za-z0-9]{{22,27}}\.{_TAIL}{{6}}\.{_TAIL}{{27,45}}",
    ),
    # -- watching
    shape("newrelic", "NRAK- NRII- NRAA- NRRA- NRIQ-", rf"NR..-{_TAIL}{{20,}}"),
    shape("posthog", "phx_", r"phx_[A-Za-z0-9]{30,}"),
    shape("honeycomb", "hcaik_ hcaic_ hcamk_", r"hca[a-z]+_[A-Za-z0-9]{30,}"),
    # -- keys
    shape(
        "jwt",
        "eyJ",
        rf"eyJ{_TAIL}{{8,2048}}\.[A-Za-z0-9_-]{{8,}}(?:\.[A-Za-z0-9_-]*){{0,3}}",
    ),
    inside("1password", "ops_eyJ", r"ops_eyJ[A-Za-z0-9_=-]{40,}"),
    shape("age", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{20,}"),
)
#: What follows a literal that stands in many a word.
_AFTER = {
    **dict.fromkeys(
        ("MT", "MD", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"), "[A-Za-z0-9]{18}"
    ),
    **dict.fromkeys(
        ("SK", "sk_", "key-", "dapi", "sqp_", "squ_", "sqa_"), "(?:[a-f0-9]{16}|live|test)"
    ),
    **dict.fromkeys(("pat", "cio", "EAA"), "[A-Za-z0-9]{14}"),
    "-us": r"[0-9]",
}
#: Finds whether long runs may hold any of them.
IN_RUNS_ANY = any_of(IN_RUNS, _AFTER)

#: The same in the runs of base64.
IN_WIDE_RUNS: tuple[Shape, ...] = (
    inside(
        "azure",
        "AccountKey= SharedAccessKey=",
        r"(?:Account|SharedAccess)Key=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})",
    ),
    inside("azure", "sig=", r"(?<=[?&])sig=(?P<secret>[A-Za-z0-9%+/=]{30,256})"),
    shape("aws-session", "IQoJb3JpZ2lu FwoGZXIvYXdz", r"(?:IQoJ|FwoG)[A-Za-z0-9+/=%_-]{80,}"),
    shape("aws-bedrock", "ABSK", r"ABSK[A-Za-z0-9+/]{80,}={0,2}"),
    inside("azure", "Q~", r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![\w~])", back=4),
    shape("fly", "fm1_ fm1r_ fm1a_ fm2_ fo1_", r"f[mo]\d[ra]?_[A-Za-z0-9+/=_-]{30,}"),
    shape("webhook", "whsec_", r"whsec_[A-Za-z0-9+/]{20,}={0,2}"),
    shape("grafana", "glsa_ glc_", r"gl(?:sa|c)_[A-Za-z0-9_+/=-]{30,}"),
    shape("sentry", "sntrys_ sntryu_ sntrya_", r"sntry._[A-Za-z0-9_+/=-]{30,}"),
    shape("docker", "eyJhdXRocyI6", r"eyJhdXRocyI6[A-Za-z0-9+/]{16,}={0,2}"),
    shape(
        "private-key", "LS0tLS1CRUdJTi", r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{40,}={0,2}", has_private_key
    ),
)
IN_WIDE_RUNS_ANY = any_of(IN_WIDE_RUNS, {"Q~": "[A-Za-z0-9_~.-]{20}"})

#: By what stands before their long run.
BEHIND: dict[str, tuple[Shape, ...]] = {
    ".": (
        shape("google", "ya29.", rf"ya29\.{_TAIL}{{20,}}"),
        shape("sendgrid", "SG.", rf"SG\.{_TAIL}{{16,64}}\.{_TAIL}{{16,}}"),
        shape("vault", "hvs. hvb. hvr.", rf"hv[sbr]\.{_TAIL}{{20,}}"),
        shape(
            "doppler",
            "dp.",
            rf"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:{_TAIL}{{1,40}}\.)?{_TAIL}{{30,}}",
        ),
        inside("terraform", ".atlasv1.", rf"[A-Za-z0-9]{{14}}\.atlasv1\.{_TAIL}{{40,}}", back=14),
        shape("dynatrace", "dt0c01. dt0s01.", r"dt0[cs]01\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
        shape("dropbox", "sl.", rf"sl\.(?:u\.)?{_TAIL}{{100,}}"),
        shape("amazon", "amzn.mws.", rf"amzn\.mws\.{_TAIL}{{32,}}"),
    ),
    "/": (
        inside(
            "slack", "hooks.slack.com/", r"hooks\.slack\.com/(?P<secret>\w{8,9}/[A-Za-z0-9_/]{20,})"
        ),
        inside(
            "discord",
            "/api/webhooks/",
            rf"/api/webhooks/\d{{15,21}}/(?P<secret>{_TAIL}{{40,}})",
        ),
        inside("teams", ".webhook.office.com/", r"\.webhook\.office\.com/(?P<secret>[\w@/-]{60,})"),
        shape("google", "1//0", rf"1//0{_TAIL}{{30,}}"),
        inside("url-password", "://", r"://(?P<secret>[A-Za-z0-9_-]{20,256})@", is_mixed),
    ),
    ":": (
        inside("google", ":APA91b", rf":(?P<secret>APA91b{_TAIL}{{60,}})"),
        inside("telegram", ":AA", rf"(?<=[0-9]{{8}}):(?P<secret>AA{_TAIL}{{32,}})"),
    ),
}
