"""Envelopes: what a hook saw of a session, read strictly.

The hook writes them with the standard library alone (``cli/hook.py``); this is the other end. A
file that is not exactly an envelope is refused whole: half of one could name the wrong session.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from memoryd.memory.errors import BadEnvelope

VERSION = 1
SIZE_LIMIT_BYTES = 64 << 10

_LARGEST = 2**63 - 1
_AbsolutePath = Annotated[str, msgspec.Meta(pattern=r"\A/[^\0]*\Z", max_length=4096)]
_Agent = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9][a-z0-9-]*\Z", max_length=40)]
_Session = Annotated[
    str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][-A-Za-z0-9_.:+@]*\Z", max_length=128)
]
_Reason = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][-A-Za-z0-9_.:+@]*\Z", max_length=80)]
#: The words agents have for why; all else could be a token, and is taken for no reason given.
_WORD = re.compile(r"[a-z][a-z_-]{0,39}")
_Natural = Annotated[int, msgspec.Meta(ge=0, le=_LARGEST)]
_Switch = Annotated[
    str, msgspec.Meta(pattern=r"\AMEMORYD_(?:DISABLE[A-Z_]*|OWN_CALL)\Z", max_length=40)
]


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One envelope, version 1: metadata only, never a word of what was said."""

    version: Literal[1]
    #: The agent as ``memoryd-hook`` was told, such as ``claude-code``.
    agent: _Agent
    event: Literal["session-end", "stop", "pre-compact"]
    session: _Session
    #: The agent's record of the session, absolute; None where the agent named none.
    transcript: _AbsolutePath | None
    cwd: _AbsolutePath | None
    #: The agent's word for why, such as ``clear`` or ``auto``.
    reason: _Reason | None
    #: Bytes of whole lines at the time of the event; None where the hook could not tell.
    cutoff: _Natural | None
    #: Wall time of the event, milliseconds.
    time_ms: _Natural
    #: Names of the kill switches that were on in the agent's environment, ``MEMORYD_OWN_CALL``
    #: where it answered a question of ours.
    switches: Annotated[tuple[_Switch, ...], msgspec.Meta(max_length=8)]


class _Head(msgspec.Struct):
    version: int


_HEAD = msgspec.json.Decoder(_Head)
_WHOLE = msgspec.json.Decoder(Envelope)


def read(path: Path) -> Envelope:
    """The envelope in ``path``.

    Raises ``BadEnvelope`` with what is wrong for anything that is not a regular file holding
    exactly one envelope of a known version, ``FileNotFoundError`` where another intake was faster,
    and any other ``OSError`` as it came: the file may be fine.
    """
    return parse(_bytes(path), path.name)


def parse(data: bytes, name: str) -> Envelope:
    """The envelope that ``data`` is; errors call it ``name``. Raises ``BadEnvelope``."""
    try:
        version = _HEAD.decode(data).version
        if version != VERSION:
            raise BadEnvelope(
                f"{name} is an envelope of version {version}; this memoryd reads version {VERSION}",
                hint="upgrade memoryd, then move the file back into the inbox",
            )
        envelope = _WHOLE.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadEnvelope(f"{name} is not an envelope: {error}") from error
    if session_is_secret(envelope.session):
        raise BadEnvelope(f"{name} names a session by a secret")
    if path_is_secret(envelope.transcript or ""):
        raise BadEnvelope(f"{name} names a transcript whose path holds a secret")
    return _without_secrets(envelope)


def _without_secrets(envelope: Envelope) -> Envelope:
    """The envelope without a reason or a directory that is, or may be, a secret.

    Others than our hook may write envelopes, and it has no scanner.
    """
    reason, cwd = envelope.reason, known_place(envelope.cwd or "") or None
    if reason and (not _WORD.fullmatch(reason) or path_is_secret(reason)):
        reason = None
    return msgspec.structs.replace(envelope, reason=reason, cwd=cwd)


#: Stands for each: as random as any of them is.
_ANY_UUID = "d25a71b3-9c86-4e0f-8b14-6f8e529b1da7"


def session_is_secret(session: str) -> bool:
    """Whether the scanner takes the id of a session for a secret: such a session has no place here.

    It would stand in rows, trailers and notes for good. No agent that is known names one so.
    """
    from memoryd.memory.secret_values import UUID

    return UUID.fullmatch(session) is None and _has_secret(session)


@lru_cache(maxsize=1024)
def path_is_secret(path: str) -> bool:
    """Whether the scanner finds a secret in ``path``: rows and logs would hold it for good.

    A path that differs from one that was looked at in its UUID only, as an agent's transcripts do,
    is not looked at again: what names a secret stands around it. One inside a longer word is a part
    of that.
    """
    return bool(path) and _has_secret(_own_uuid().sub(_ANY_UUID, path))


@lru_cache(maxsize=1)
def _own_uuid() -> re.Pattern[str]:
    from memoryd.memory.secret_values import UUID

    return re.compile(rf"(?<![0-9A-Za-z]){UUID.pattern}(?![0-9A-Za-z])")


@lru_cache(maxsize=1024)
def _has_secret(text: str) -> bool:
    from memoryd.memory.scanner import has_secret

    return has_secret(text)


def known_place(cwd: str) -> str:
    """``cwd``, or nothing where it holds a secret: such a directory counts as not known."""
    return "" if path_is_secret(cwd) else cwd


def _bytes(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise BadEnvelope(f"{path.name} is a link, not a file") from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadEnvelope(f"{path.name} is not a regular file")
        data = os.read(descriptor, SIZE_LIMIT_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > SIZE_LIMIT_BYTES:
        raise BadEnvelope(f"{path.name} is larger than {SIZE_LIMIT_BYTES} bytes")
    return data
