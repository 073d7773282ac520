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
from memoryd.memory.text import similarity, words

#: An extract needs at least this much, in characters and in messages.
MIN_CHARACTERS = 200
MIN_TURNS = 2
#: Two messages of a person that share fewer words than this are about different things.
TOPIC_SIMILARITY = 0.12
#: Fewer different words ("yes", "go on") are about nothing of their own.
TOPIC_WORDS = 3
#: How the id of a long message's second and further parts ends.
_LATER_PART = re.compile(r"#\d+\Z")


class Spoken(Protocol):
    """What a gate looks at in a message."""

    @property
    def seq(self) -> int:
        """Its ordinal in the session."""
        ...

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


@dataclass(frozen=True)
class SoFar:
    """What came before, in the whole session up to the job's cutoff, as far as gates ask for it."""

    #: How often a person spoke.
    runs: int = 0
    #: Extracts that asked a provider.
    extracts: int = 0
    #: The message after which the agent itself last saved or deleted memory; 0: never.
    saved_seq: int = 0
    #: An earlier attempt of this very job has asked already.
    let_through: bool = False


NOTHING_SO_FAR = SoFar()


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


def calls_allowed(runs: int, every_n_runs: int) -> int:
    """How many calls extracts of a session may have made once a person has spoken ``runs`` times.

    One in each window of a run in four more than the interval, begun windows included, so that a
    change of topic is read at once now and then; and always those of a steady interval. With 8:
    two in 20 runs, whatever is said in them.
    """
    window = every_n_runs + every_n_runs // 4
    return max(-(-runs // window), runs // every_n_runs)


def spoken(
    job: Job, messages: Iterable[Spoken], every_n_runs: int, so_far: SoFar = NOTHING_SO_FAR
) -> Refusal | None:
    """What was said since the cursor: is it worth a call now? None: go on.

    ``messages`` are those between cursor and cutoff, oldest first; no more of them are looked at
    than the answer needs.
    """
    asked = job.trigger == "cli"
    if not waits(job) or so_far.let_through:
        if any(message.role == "user" for message in messages):
            return None
        return Refusal("nothing.said", throttled=job.kind == "extract" and not asked)
    said = _Said(so_far.saved_seq)
    for message in messages:
        said.add(message)
    code = said.too_soon() or said.too_often(every_n_runs, so_far)
    return Refusal(code, throttled=True) if code else None


def waits(job: Job) -> bool:
    """Whether the job may be put off for a later one: an extract that nobody asked for."""
    return job.kind == "extract" and job.reason != "compact" and job.trigger != "cli"


@dataclass
class _Said:
    """What the gates of an extract count. The parts of a long message are one turn."""

    #: The message after which the agent itself last saved memory: runs count anew from there.
    saved_seq: int
    characters: int = 0
    turns: int = 0
    people: int = 0
    runs: int = 0
    changed: bool = False
    topic: str = ""

    def add(self, message: Spoken) -> None:
        """Count one message, or one part of a long one."""
        self.characters += len(message.text)
        if _LATER_PART.search(message.id):
            return
        self.turns += 1
        if message.role != "user":
            return
        self.people += 1
        self.runs = self.runs + 1 if message.seq > self.saved_seq else 0
        self.changed = False
        if len(set(words(message.text))) >= TOPIC_WORDS:
            same = not self.topic or similarity(message.text, self.topic) >= TOPIC_SIMILARITY
            self.changed, self.topic = not same, message.text

    def too_soon(self) -> str:
        """Why what was said is not to be read yet, however long nothing was; else empty."""
        if not self.people:
            return "nothing.said"
        if not self.runs:
            return "extract.saved-by-agent"
        if self.characters < MIN_CHARACTERS or self.turns < MIN_TURNS:
            return "extract.too-short"
        return ""

    def too_often(self, every_n_runs: int, so_far: SoFar) -> str:
        """Why the session has had its calls for now; else empty."""
        if not self.changed and self.runs < every_n_runs:
            return "extract.throttled"
        if so_far.extracts >= calls_allowed(max(so_far.runs, self.people), every_n_runs):
            return "extract.enough-calls"
        return ""
