"""``memoryd cite``: an agent's answer without its citations, which are credited."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator
from typing import cast

import click

from memoryd.cli.common import configuration, home_option, json_option, say
from memoryd.memory.home import Home
from memoryd.memory.text import without_surrogates

PIECE_BYTES = 64 * 1024


@click.command(epilog="Example: memoryd cite --agent my-agent --session s1 < answer.txt")
@click.option("--agent", required=True, metavar="AGENT", help="The agent that answered.")
@click.option("--session", required=True, metavar="ID", help="The session it answered in.")
@home_option
@json_option
def cite(agent: str, session: str, home: Home, as_json: bool) -> None:
    """Print the answer on standard input without its <memory-used> tags, as it comes.

    The notes they name are credited, each once for every time it was shown in that session.
    """
    from memoryd.jobs.workplace import open_ledger
    from memoryd.memory.cited_stream import CitedStream
    from memoryd.memory.clock import SystemClock

    ledger = open_ledger(home, configuration(home), SystemClock())
    stream = CitedStream()
    show = _Answer(as_json)
    for piece in _pieces():
        show.add(stream.write(piece))
    show.add(stream.flush())
    credited = ledger.usage.credit(agent, session, stream.cited)
    if as_json:
        text = without_surrogates("".join(show.kept))
        say({"text": text, "cited": list(stream.cited), "credited": credited}, "", as_json)


def _pieces() -> Iterator[str]:
    """Standard input as text; bytes that are no UTF-8 come through as they are."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    source = cast(io.BufferedReader, sys.stdin.buffer)
    while data := source.read1(PIECE_BYTES):
        yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


class _Answer:
    """What may be shown: printed byte for byte as it comes, or kept for the JSON."""

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self.kept: list[str] = []
        self._out = sys.stdout.buffer

    def add(self, text: str) -> None:
        """The next piece."""
        if self.keep:
            self.kept.append(text)
        else:
            self._out.write(text.encode("utf-8", "surrogateescape"))
            self._out.flush()
