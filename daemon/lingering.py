"""Lingering: systemd keeps a person's services while they are logged out (loginctl(1)).

It is the person's whole session that lingers, not our service alone. So it is switched on only when
asked for, and off only where it was us who switched it on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from memoryd.daemon.service_programs import QUESTION_SECONDS, ask, must
from memoryd.memory.errors import ServiceError


def lingers(environ: Mapping[str, str]) -> bool | None:
    """Whether the person lingers; None where nobody can say."""
    try:
        answer = _loginctl(environ, "show-user", "--property=Linger", "--value")
    except ServiceError:
        return None
    # One who neither is logged in nor lingers is not known to logind at all.
    return answer == "yes" if answer is not None else None


def switch_on(environ: Mapping[str, str]) -> bool:
    """Have the person linger; whether that is new. Raises ``ServiceError`` where it is refused."""
    if lingers(environ):
        return False
    _must_do(environ, "enable-linger")
    if lingers(environ) is False:
        raise _in_vain("enable-linger", "lingering could not be switched on")
    return True


def switch_off(environ: Mapping[str, str]) -> None:
    """End the lingering. Raises ``ServiceError`` where it is refused."""
    _must_do(environ, "disable-linger")
    if lingers(environ):
        raise _in_vain("disable-linger", "lingering could not be switched off")


def _in_vain(command: str, what: str) -> ServiceError:
    said = f"{what}: loginctl {command} said nothing and changed nothing"
    return ServiceError(said, hint=_by_hand(command))


def _by_hand(command: str) -> str:
    return f"someone who may: `loginctl {command} {os.getuid()}`"


def _loginctl(environ: Mapping[str, str], command: str, *words: str) -> str | None:
    done = ask(environ, QUESTION_SECONDS, "loginctl", command, *words, str(os.getuid()))
    return done.stdout.strip() if done.returncode == 0 else None


def _must_do(environ: Mapping[str, str], command: str) -> None:
    done = ask(environ, QUESTION_SECONDS, "loginctl", command, str(os.getuid()))
    must(done, f"loginctl {command} failed", _by_hand(command))
