"""What ``memoryd doctor`` says of the service: how it stands, and what it does not see.

A service has an environment of its own. What works in the shell may not work in it: the key of the
provider, the programs, where agents keep their transcripts.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from memoryd.daemon import service
from memoryd.daemon.service_files import MARKER, Installation, named_by
from memoryd.daemon.service_programs import Manager
from memoryd.jobs.doctor import Check, Look
from memoryd.memory.errors import ServiceError
from memoryd.memory.health import Finding
from memoryd.memory.text import clip

#: So many restarts by itself since it was started by hand are told.
RESTARTS = 3
#: Where agents are told to keep their transcripts, by their own variables.
_PLACES = (
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "ESTACODA_HOME", "HERMES_HOME"),
    "XDG_DATA_HOME",
)
#: Providers that want a key, and where it is when nothing names one.
_USUAL_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_LOGS = "`memoryd service logs` tells why"
_AGAIN = "`memoryd service install` writes it anew and starts it"


def look_at_service(look: Look) -> Iterator[Finding]:
    """How it stands; that none is installed for this home is said, and is no fault."""
    manager = service.manager(look.environ)
    text = _file_of(manager, look)
    if text is None:
        runs = "a daemon runs by hand" if look.daemon else "no daemon answers"
        yield Finding("service.ok", "ok", f"no service is installed for this home; {runs}")
        return
    found = service.status(manager, _installation(look, text))
    yield from _file(found, text)
    yield from _state(found, look)
    yield from _unseen(manager, look, text)
    if found.lingers is False:
        what = "the service runs while you are logged in"
        yield Finding("service.linger", "ok", what, "`memoryd service install --linger` keeps it")


def _file_of(manager: Manager, look: Look) -> str | None:
    try:
        text = manager.file().read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    home = named_by(text).home
    return text if MARKER in text and home is not None and home.root == look.home.root else None


def _installation(look: Look, text: str) -> Installation:
    """The installation that looks; where it has no program of its own, the one that stands."""
    try:
        return Installation.running(look.home, look.environ)
    except ServiceError:
        named = named_by(text)
        return Installation(Path(named.program), look.home, named.path)


def _file(found: service.Status, text: str) -> Iterator[Finding]:
    program = named_by(text).program
    if not Path(program).is_file():
        what = f"the service starts {program or 'nothing'}, which is not there"
        yield Finding("service.gone", "problem", what, _AGAIN)
    elif not found.current:
        what = f"{found.path} differs from this installation"
        yield Finding("service.outdated", "warning", what, _AGAIN)


def _state(found: service.Status, look: Look) -> Iterator[Finding]:
    state = found.state
    if state.active is None:
        yield Finding("service.unknown", "warning", f"{found.manager}: {state.detail}")
        return
    if not state.enabled:
        yield Finding("service.disabled", "warning", "the service is not started at login", _AGAIN)
    if not state.active:
        yield from _inactive(found, look)
    if (state.restarts or 0) >= RESTARTS:
        what = f"the service was started again by itself {state.restarts} times"
        yield Finding("service.restarts", "warning", what, _LOGS)


def _inactive(found: service.Status, look: Look) -> Iterator[Finding]:
    begin = "`memoryd service start` starts it"
    if look.daemon is not None:
        what = "the service does not run; a daemon that was started by hand does"
        yield Finding("service.ok", "ok", what)
        return
    if found.stopped:
        yield Finding("service.stopped", "warning", "you stopped the service", begin)
    elif found.state.failed:
        what = f"the service gave up: {found.state.detail}"
        yield Finding("service.failed", "problem", what, f"{_LOGS}; then {begin}")
    else:
        what = f"the service does not run: {found.state.detail}"
        yield Finding("service.inactive", "problem", what, f"{begin}; {_LOGS}")


def _unseen(manager: Manager, look: Look, text: str) -> Iterator[Finding]:
    """What the service lacks: programs on its PATH, and variables."""
    provider = look.config.provider
    wanted = ["git", *(provider.command[:1] if provider.name == "command" else [])]
    path = named_by(text).path
    for program in wanted:
        if path and shutil.which(program, path=path) is None:
            what = f"the service finds no {program} on its PATH"
            todo = "`memoryd service install` in a shell that does gives it that shell's PATH"
            yield Finding("service.program", "problem", what, todo)
    yield from _variables(manager, look, text)


def _variables(manager: Manager, look: Look, text: str) -> Iterator[Finding]:
    key = _key(look)
    places = [name for name in _PLACES if look.environ.get(name)]
    seen = manager.sees([*places, *([key] if key else [])], text) if places or key else frozenset()
    if seen is None:
        return
    if key and key not in seen:
        what = f"the service does not see {key}, the key of the provider"
        todo = (
            "put the key into a file that only you can read and name it in api_key_file under"
            " [provider], without api_key_env"
        )
        yield Finding("service.key", "problem", what, todo)
    for name in places:
        if name not in seen:
            what = f"the service does not see {name}, which this shell has set"
            yield Finding("service.variable", "warning", what, _how_to_set(manager, name, look))


def _key(look: Look) -> str:
    """The variable that the provider's key must come from; empty where it needs none."""
    provider = look.config.provider
    usual = _USUAL_KEYS.get(provider.name, "")
    if not usual or provider.api_key_env:
        return usual and provider.api_key_env
    # A server of one's own often wants no key; where the shell has one it seems to.
    needed = not provider.base_url or look.environ.get(usual)
    return usual if needed and not provider.api_key_file else ""


def _how_to_set(manager: Manager, name: str, look: Look) -> str:
    if manager.name == "launchd":
        return f"`launchctl setenv {name} ...`, then `memoryd service restart`"
    line = f"Environment={name}={clip(look.environ[name], 200)}"
    return f"`systemctl --user edit memoryd.service`: [Service] {line}"


#: For ``doctor.CHECKS``: it lives here, because jobs know nothing of services.
CHECK = Check("service.ok", "the service is installed, enabled and runs", look_at_service)
