"""The provider's key: from the environment, or from a file that only its owner can read."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from memoryd.memory.config import ProviderSettings
from memoryd.memory.errors import ProviderPermanent

_KEY_BYTES = 4_096


def read_key(settings: ProviderSettings, environ: Mapping[str, str], usual: str) -> str:
    """The key of the variable ``api_key_env``, else of ``api_key_file``, else of ``usual``.

    Empty where nothing names one and ``base_url`` is set: servers of one's own often want none.
    Raises ``ProviderPermanent`` with what to do; the key itself is never part of a message.
    """
    if settings.api_key_env:
        value = environ.get(settings.api_key_env, "").strip()
        if not value:
            raise ProviderPermanent(
                f"the environment variable {settings.api_key_env} holds no key",
                hint="set it for the service too, or name a 0600 file in provider.api_key_file",
            )
        return _sendable(value, settings.api_key_env)
    if settings.api_key_file:
        return _from_file(Path(settings.api_key_file).expanduser())
    value = environ.get(usual, "").strip()
    if not value and not settings.base_url:
        raise ProviderPermanent(
            f"no key for the provider: {usual} is not set",
            hint="set provider.api_key_env or provider.api_key_file",
        )
    return _sendable(value, usual)


def _sendable(value: str, place: str) -> str:
    """``value`` where a header can hold it; else ``ProviderPermanent`` that names ``place``."""
    if value and not (value.isascii() and value.isprintable() and len(value.split()) == 1):
        raise ProviderPermanent(
            f"what {place} holds is no key: a key is one word of plain characters",
            hint=f"set {place} again, without quotes or line breaks in it",
        )
    return value


def _from_file(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ProviderPermanent(
            f"the key file {path} cannot be read: {error.strerror}",
            hint="check provider.api_key_file",
        ) from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ProviderPermanent(f"the key file {path} is no file", hint="name a plain file")
        if found.st_mode & 0o077:
            raise ProviderPermanent(
                f"the key file {path} can be read by others", hint=f"run: chmod 600 {path}"
            )
        value = file.read(_KEY_BYTES).decode("utf-8", "replace").strip()
    if not value or len(value.split()) != 1:
        raise ProviderPermanent(
            f"the key file {path} does not hold one key", hint="put the key alone in it"
        )
    return _sendable(value, str(path))
