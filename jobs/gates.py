"""May this session be distilled now? Pure decisions on what ingestion found.

A gate that says no completes the job with its code and leaves the cursor, so that the words wait
for the next job; only what was said under a kill switch is passed over, for good.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from memoryd.jobs.job import Job
from memoryd.memory.config import Config, switched_off
from memoryd.memory.text import similarity

#: An extract needs at least this much, in characters and in messages.
MIN_CHARACTERS = 200
MIN_TURNS = 2
#: Two messages of a person that share fewer words than this are about different things.
TOPIC_SIMILARITY = 0.12
#: How the id of a long message's second and further parts ends.
_LATER_PART = re.compile(r"#\d+\Z")


class Spoken(Protocol):
    """What a gate looks at in a message."""

    @property
    def id(self) -> str:
        """The message's id; later parts of a long one end in ``#2``, ``#3`` ..."""
        ...

    @property
    def role(self) -> str:
        """``user`` or ``assistant``."""
        ...

    @property
    def text(self) -> str:
        """The redacted words."""
        ...


@dataclass(frozen=True)
class Refusal:
    """Why not. ``leaves`` says what becomes of the words: they wait, or are passed over."""

    code: str
    leaves: Literal["waiting", "passed over"] = "waiting"
    #: The job leaves no row behind, only a count in the session's.
    throttled: bool = False


def all_off(environ: Mapping[str, str]) -> bool:
    """Whether ``MEMORYD_DISABLE`` is set: then nothing is kept of what is read, for good."""
    return switched_off({"MEMORYD_DISABLE": environ.get("MEMORYD_DISABLE", "")}, "")


def switches(job: Job, config: Config, environ: Mapping[str, str]) -> Refusal | None:
    """The kill switches and settings, cheapest first. None: go on."""
    if switched_off(environ, "EXTRACTION"):
        return Refusal("extraction.switched-off", "passed over")
    if job.trigger == "cli":
        return None  # asked for by a person: settings decide only what happens by itself
    if config.curation.mode == "manual":
        return Refusal("curation.manual")
    if job.kind == "finalize" and not config.curation.audit_on_session_end:
        return Refusal("curation.session-end-off")
    if job.reason == "compact" and not config.curation.audit_on_compact:
        return Refusal("curation.compact-off")
    return None


def nothing_open(job: Job, off: bool) -> Refusal:
    """None of the words may be distilled: their projects are off, or what was said is excluded."""
    if off:
        return Refusal("extraction.off")
    return Refusal("nothing.said", "passed over", throttled=job.kind == "extract")


def spoken(job: Job, messages: Iterable[Spoken], every_n_runs: int) -> Refusal | None:
    """What was said since the cursor: is it worth a call now? None: go on.

    ``messages`` are those between cursor and cutoff, oldest first; no more of them are looked at
    than the answer needs.
    """
    asked = job.trigger == "cli"
    if job.kind == "finalize" or job.reason == "compact" or asked:
        if any(message.role == "user" for message in messages):
            return None
        return Refusal("nothing.said", throttled=job.kind == "extract" and not asked)
    said = _Said()
    for message in messages:
        said.add(message)
    if not said.runs:
        return Refusal("nothing.said", throttled=True)
    if said.characters < MIN_CHARACTERS or said.turns < MIN_TURNS:
        return Refusal("extract.too-short", throttled=True)
    if said.runs > 1 and similarity(said.last, said.before) < TOPIC_SIMILARITY:
        return None
    if said.runs < every_n_runs:
        return Refusal("extract.throttled", throttled=True)
    return None


@dataclass
class _Said:
    """What the gates of an extract count. The parts of a long message are one turn."""

    characters: int = 0
    turns: int = 0
    runs: int = 0
    last: str = ""
    before: str = ""

    def add(self, message: Spoken) -> None:
        """Count one message, or one part of a long one."""
        self.characters += len(message.text)
        if _LATER_PART.search(message.id):
            return
        self.turns += 1
        if message.role == "user":
            self.runs += 1
            self.last, self.before = message.text, self.last
