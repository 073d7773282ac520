"""Secrets known by the line they stand in: headers, URLs, command lines, password files."""

from __future__ import annotations

import re

from memoryd.memory.secret_shapes import Shape, inside, shape
from memoryd.memory.secret_values import has_letter_and_digit as mixed
from memoryd.memory.secret_values import has_password, is_no_port, is_real

#: What one argument of a command line holds, quoted or bare.
_ARGUMENT = r"[\"']?(?P<secret>[^\s\"'|;&<>]{3,128})"
#: Up to so many characters of the same command before its option.
_BEFORE = r"[^\n|;]{0,160}?"


def _command(programs: str, option: str) -> Shape:
    """The argument of ``option`` behind any of ``programs``."""
    return shape(
        "command-line", programs, rf"[a-z0-9_.-]+\b{_BEFORE}\s{option}{_ARGUMENT}", is_no_port
    )


#: Looked for anywhere in any text. The first string, one character where that is rare and else
#: empty, must be in it, the second in its lower-case form.
ALWAYS: tuple[tuple[str, str, Shape], ...] = (
    (
        "",
        "bearer",
        shape(
            "bearer",
            "Bearer bearer BEARER",
            r"[A-Za-z]{6}[ \t]{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{16,})",
            mixed,
        ),
    ),
    (
        "'",
        "identified by",
        shape(
            "command-line",
            "identified IDENTIFIED Identified",
            r"[A-Za-z]{10}\s+[Bb][Yy]\s+'(?P<secret>[^'\n]{3,128})'",
            is_real,
        ),
    ),
    (
        "",
        "basic",
        shape(
            "basic",
            "Basic basic BASIC",
            r"[A-Za-z]{5}[ \t]{1,4}(?P<secret>[A-Za-z0-9+/]{8,}={0,2})",
            has_password,
        ),
    ),
    (
        '"',
        'auth"',
        inside(
            "basic", 'auth"', r"auth\"\s{0,4}:\s{0,4}\"(?P<secret>[A-Za-z0-9+/=]{8,})", has_password
        ),
    ),
    (
        "_",
        "_auth",
        inside(
            "basic", "_auth", r"_auth\s{0,2}=\s{0,2}\"?(?P<secret>[A-Za-z0-9+/=]{8,})", has_password
        ),
    ),
    (
        "",
        "://",
        inside(
            "url-password",
            "://",
            r"://[^\s/:@\[\"'<>]{0,128}:(?P<secret>[^\s/\"'<>]{1,256})@",
            is_real,
        ),
    ),
    (
        "5",
        ":5432:",
        inside(
            "pgpass",
            ":5432:",
            r":5432:[^:\s]{1,64}:[^:\s]{1,64}:(?P<secret>[^\s:]{3,128})",
            is_real,
        ),
    ),
    (
        "*",
        "*:*:",
        inside("pgpass", "*:*:", r"\*:\*:(?:\*:)?[^:\s*]{1,64}:(?P<secret>[^\s:]{3,128})", is_real),
    ),
)

#: How an option starts that may hold a secret.
OPTION = re.compile(r" -(?:[puawPUs]|-user|-proxy-user|key)")
#: Looked for only in a text with such an option in it.
COMMANDS: tuple[tuple[str, Shape], ...] = (
    (
        "curl",
        shape(
            "command-line",
            "-u --user --proxy-user -U",
            r"(?:(?<!-)-[uU] ?|--(?:proxy-)?user[ =])[\"']?"
            r"[^\s:\"'=-][^\s:\"']{0,63}:(?!//)(?P<secret>[^\s\"']{3,128})",
            is_no_port,
        ),
    ),
    ("sshpass", _command("sshpass", r"-p ?")),
    ("mysql", _command("mysql", "-p")),
    ("mariadb", _command("mariadb", "-p")),
    ("mongo", _command("mongo", r"-p[ =]?")),
    ("redis-cli", _command("redis-cli", r"-a[ =]?")),
    ("docker login", _command("docker", r"login\s(?:[^\n|;]{0,120}?\s)?-p[ =]?")),
    ("podman login", _command("podman", r"login\s(?:[^\n|;]{0,120}?\s)?-p[ =]?")),
    ("az login", _command("az", r"login\s(?:[^\n|;]{0,120}?\s)?-p[ =]?")),
    ("sqlcmd", _command("sqlcmd", r"-P[ =]?")),
    ("ldap", _command("ldapsearch ldapmodify ldapadd ldapwhoami", r"-w[ =]?")),
    ("mosquitto", _command("mosquitto_pub mosquitto_sub", r"-P[ =]?")),
    ("zip", _command("zip unzip", r"-P[ =]?")),
    ("7z", _command("7z 7za", "-p")),
    (
        "smbclient",
        shape(
            "command-line",
            "smbclient",
            rf"smbclient\b{_BEFORE}-U[ =]?[\"']?[^\s%]{{1,64}}%{_ARGUMENT}",
            is_real,
        ),
    ),
    ("pass:", inside("command-line", "pass:", rf"(?<=[ =\"'])pass:{_ARGUMENT}", is_real)),
    (
        "storepass",
        shape(
            "command-line", "-storepass -keypass", rf"-(?:store|key)pass[ =]{_ARGUMENT}", is_real
        ),
    ),
)

#: Looked for where a password is named.
NETRC = shape(
    "netrc",
    "machine default",
    r"(?:machine\s+(?=\S{0,80}[.\d]|localhost)\S{1,128}|default)\s+"
    r"(?:(?:login|account)\s+\S{1,128}\s+){0,2}password\s+[\"']?(?P<secret>[^\s\"']{3,128})",
    is_real,
)
