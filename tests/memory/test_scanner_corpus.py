"""The scanner on a corpus of secrets as they are met, and of what only looks like them."""

from __future__ import annotations

import re

import pytest
from secret_corpus import CAUGHT, LEFT, build, hidden, plain, without

from memoryd.memory.scanner import redact, verdicts


@pytest.mark.parametrize("name", CAUGHT)
def test_a_secret_is_hidden_and_nothing_else(name: str) -> None:
    """Whatever it is made of: the secret goes, the words around it stay, and once is enough."""
    for seed in range(8):
        built = build(CAUGHT[name], seed)

        clean, count = redact(plain(built))

        assert re.sub(r"\[REDACTED:[a-z0-9-]+\]", "[REDACTED]", clean) == without(built)
        assert count == len(hidden(built))
        assert "secret" in verdicts(plain(built))
        assert redact(clean) == (clean, 0)


@pytest.mark.parametrize("text", LEFT)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    """Words, code, names, hashes and placeholders are left alone."""
    built = build(text)

    assert redact(built) == (built, 0)


def test_the_corpus_is_large_enough() -> None:
    """Sixty that must be caught, and sixty that must not."""
    assert len(CAUGHT) >= 60
    assert len(LEFT) >= 60
