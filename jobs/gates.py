"""May this session be distilled now? Pure decisions on what ingestion found.

A gate that says no completes the job with its code and leaves the cursor, so that the words wait
for the next job; only what was said under a kill switch is passed over, for good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


class Spoken(Protocol):
    """What a gate looks at in a message."""

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
    if not config.memory.auto_extract:
        return Refusal("extraction.off", "passed over")
    if config.curation.mode == "manual":
        return Refusal("curation.manual")
    if job.kind == "finalize" and not config.curation.audit_on_session_end:
        return Refusal("curation.session-end-off")
    if job.reason == "compact" and not config.curation.audit_on_compact:
        return Refusal("curation.compact-off")
    return None


def spoken(job: Job, messages: Sequence[Spoken], every_n_runs: int) -> Refusal | None:
    """What was said since the cursor: is it worth a call now? None: go on.

    ``messages`` are those between cursor and cutoff, oldest first.
    """
    users = [message.text for message in messages if message.role == "user"]
    if not users:
        return Refusal("nothing.said", throttled=job.kind == "extract")
    if job.kind == "finalize" or job.reason == "compact" or job.trigger == "cli":
        return None
    if sum(len(message.text) for message in messages) < MIN_CHARACTERS:
        return Refusal("extract.too-short", throttled=True)
    if len(messages) < MIN_TURNS:
        return Refusal("extract.too-short", throttled=True)
    if len(users) > 1 and similarity(users[-1], users[-2]) < TOPIC_SIMILARITY:
        return None
    if len(users) < every_n_runs:
        return Refusal("extract.throttled", throttled=True)
    return None
