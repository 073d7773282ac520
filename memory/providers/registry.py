"""The configured provider. Each is imported only when it is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from memoryd.memory.config import ProviderSettings
from memoryd.memory.providers.base import Provider


def make(settings: ProviderSettings, environ: Mapping[str, str], own_calls: Path) -> Provider:
    """The provider that ``settings`` names; keys are read from ``environ`` at each call.

    ``own_calls`` is the folder that a program which answers for us runs in (``own_calls.py``).

    Nothing is asked or checked here: what is missing is said by the first call, as
    ``ProviderPermanent`` with a hint.
    """
    if settings.name == "openai":
        from memoryd.memory.providers.openai import OpenAIProvider

        return OpenAIProvider(settings, environ)
    if settings.name == "anthropic":
        from memoryd.memory.providers.anthropic import AnthropicProvider

        return AnthropicProvider(settings, environ)
    if settings.name == "command":
        from memoryd.memory.providers.command import CommandProvider

        return CommandProvider(settings, environ, own_calls)
    from memoryd.memory.providers.rules import RulesProvider

    return RulesProvider()
