"""What codes mean, in a few words, for whoever reads a terminal. ``--json`` gives the codes."""

from __future__ import annotations

#: Who made a job, by its trigger.
MADE_BY = {
    "hook": "a hook of its agent told of it",
    "sweep": "the sweep found that it had ended",
    "cli": "you asked for it",
    "daily": "the daily check made it",
    "archive": "it is from before memoryd, or was never told of",
}

#: How a job ended, why it waits, or what went wrong (docs/jobs.md).
_CODES = {
    "notes.written": "notes written",
    "review.pending": "waits for your word",
    "nothing.durable": "nothing worth keeping",
    "nothing.new": "nothing new",
    "nothing.said": "no person said anything",
    "nothing.changed": "nothing to change",
    "nothing.proposed": "nothing to do was found",
    "nothing.passed": "what was proposed was refused",
    "no.candidates": "there are no notes",
    "store.consolidated": "notes tidied",
    "session.child": "a sub-agent's session",
    "session.internal": "no person takes part in it",
    "session.excluded": "a kill switch was set",
    "session.own": "an answer to memoryd itself",
    "session.forgotten": "you had it forgotten",
    "session.discarded": "its agent deleted it",
    "transcript.gone": "the transcript is gone",
    "transcript.foreign": "it is no transcript of that agent",
    "transcript.busy": "its agent holds the transcript",
    "transcript.unreadable": "the transcript cannot be read",
    "extraction.switched-off": "extraction is switched off",
    "extraction.off": "auto_extract is false",
    "curation.manual": "curation is set to manual",
    "curation.session-end-off": "sessions are not distilled at their end",
    "curation.compact-off": "compacted sessions are not distilled",
    "memoryd.switched-off": "memoryd is switched off",
    "consolidation.switched-off": "consolidation is switched off",
    "job.cancelled": "called off",
    "job.merged": "another job took it over",
    "provider.unavailable": "the provider does not answer",
    "provider.limited": "the provider's limit is reached",
    "provider.busy": "other calls are being made",
    "provider.permanent": "the provider refuses: key or model",
    "budget.spent": "today's budget is spent",
    "budget.too-small": "no call fits into the day's budget",
    "backfill.share-spent": "backfill's share of today is spent",
    "store.busy": "another process writes the notes",
    "store.held": "many notes vanished: look at them",
    "store.detached": "an old commit is checked out",
    "baseline.locked": "a git is at work there",
    "baseline.unusable": "git or the repository is damaged",
    "baseline.missing": "the notes' history is gone",
    "disk.full": "the disk is full",
    "home.unusable": "the home cannot be used",
    "system.refused": "the system refuses to read or write",
    "history.unusable": "the session history cannot be used",
    "history.damaged": "the session history is damaged: memoryd doctor --fix",
    "history.newer": "a newer memoryd wrote the session history",
    "ledger.unusable": "another program holds the ledger",
    "ledger.damaged": "the ledger is damaged: memoryd doctor --fix",
    "project.config-unusable": "the project's .memoryd.toml cannot be used",
    "plan.unreadable": "what it decided on cannot be read",
    "cursor.unreadable": "how far its session was distilled cannot be read",
    "kind.unknown": "only a newer memoryd knows this kind of job",
    "attempt.crashed": "its process died",
    "attempt.error": "a fault of memoryd's own",
    "answer.unusable": "the provider's answer was no answer",
}


#: What a person can do about a job that waits, by the reason. Most of it passes by itself.
_TO_DO = {
    "provider.unavailable": "look at the network and at [provider]; it is tried again by itself",
    "provider.limited": "nothing; it goes on when the provider's limit lifts",
    "provider.busy": "nothing, or raise max_concurrency under [provider]",
    "provider.permanent": "mend the key or the model, then restart memoryd or send it SIGHUP",
    "budget.spent": "nothing, or raise daily_calls, daily_tokens or daily_cost under [provider]",
    "budget.too-small": "raise what it names, then restart memoryd or send it SIGHUP",
    "backfill.share-spent": "nothing, or raise share under [backfill]",
    "store.busy": "nothing; `memoryd doctor` names who holds the store for long",
    "store.held": "look at what vanished: `memoryd memory restore`",
    "store.detached": "check out the branch main again in the store",
    "baseline.missing": "put the history back: `memoryd memory restore`",
    "baseline.locked": "nothing while a git works there; `memoryd doctor` names a lock left behind",
    "baseline.unusable": "`memoryd doctor` says what is wrong with git or the repository",
    "transcript.busy": "nothing; it goes on when the agent lets go of its database",
    "disk.full": "make room on the disk",
    "system.refused": "`memoryd doctor` looks at the disk and the home",
    "history.unusable": "`memoryd doctor` says what is wrong",
    "history.damaged": "`memoryd doctor --fix` begins it anew; the transcripts are read again",
    "history.newer": "upgrade memoryd",
    "ledger.unusable": "nothing, unless it lasts: `memoryd doctor` says what is wrong",
    "ledger.damaged": "`memoryd doctor --fix` puts the newest copy in its place",
    "plan.unreadable": "`memoryd doctor` says which store cannot be asked",
    "cursor.unreadable": "`memoryd doctor --fix` sets the row aside",
    "kind.unknown": "upgrade memoryd again, or call it off with `memoryd cancel`",
    "project.config-unusable": "mend the project's .memoryd.toml",
}


def to_do(code: str | None) -> str:
    """What a person can do about what waits for this reason; empty where nobody knows."""
    return _TO_DO.get(code or "", "")


def code_of(said: str) -> str | None:
    """The code that ``said`` is, or is the words of; None for what is neither."""
    if said in _CODES or said in _codes_of_errors():
        return said
    return next((code for code, words in _CODES.items() if words == said.strip()), None)


def _codes_of_errors() -> set[str]:
    """What an attempt may have failed with."""
    from memoryd.memory import errors

    every = vars(errors).values()
    return {str(each.code) for each in every if isinstance(each, type) and hasattr(each, "code")}


def near_codes(said: str) -> list[str]:
    """Codes that look like ``said``, or whose words do; the nearest first."""
    import difflib

    every = {code: code for code in _CODES} | {words: code for code, words in _CODES.items()}
    near = difflib.get_close_matches(said.lower(), list(every), n=3, cutoff=0.5)
    return list(dict.fromkeys(every[each] for each in near))


def plain(code: str | None) -> str:
    """What a code says, in words; one that has none stands for itself, none is empty."""
    return _CODES.get(code or "", code or "")
