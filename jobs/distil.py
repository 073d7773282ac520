"""From a session's words to notes: what works a finalize, an extract or a backfill.

The path, in the order of the calls in ``distil``: settle a plan that stands; ingest the transcript
up to the cutoff; the gates; then slice by slice: read (ask the provider, decide, draft), record
the plan, apply it, advance the cursor. From the recorded plan on, nothing asks a model again: a
crash after it is settled by whoever claims the session next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from memoryd.jobs import gates
from memoryd.jobs.backfill import makes_way
from memoryd.jobs.candidates import once_settled
from memoryd.jobs.control import GiveBack, Snooze
from memoryd.jobs.directories import directories, started_in
from memoryd.jobs.forgetting import Forgetter
from memoryd.jobs.gates import Refusal, SoFar
from memoryd.jobs.job import Job
from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.letting_go import keep_nothing
from memoryd.jobs.reading import WRITING_SECONDS, read_slice, slice_of
from memoryd.jobs.records import KeptCandidate, Rollout
from memoryd.jobs.recovering import is_recovered, standing_plan
from memoryd.jobs.stores import WRITER_WAIT_SECONDS, take_in_edits
from memoryd.jobs.workplace import Workplace, find_transcript
from memoryd.memory import seams
from memoryd.memory.apply import apply_plan
from memoryd.memory.config import Config
from memoryd.memory.errors import ConfigError, TranscriptGone
from memoryd.memory.excluded_places import ExcludedPlaces
from memoryd.memory.log import logger
from memoryd.memory.plan import Plan, SliceRange
from memoryd.memory.projects import Resolver
from memoryd.sessions.stored import StoredMessage

#: Messages looked at to fill one slice.
SLICE_MESSAGES = 500
#: Citing messages credited at a time.
CITATIONS = 100
#: Between two looks at a project whose own configuration cannot be used.
PROJECT_CONFIG_WAIT_MS = 600_000


@dataclass(frozen=True)
class _Attempt:
    """One attempt at one job, and what it works with."""

    job: Job
    place: Workplace
    keeper: LeaseKeeper
    resolver: Resolver
    #: Where the agent was started: the directory of what was said in none that is known.
    cwd: str
    #: What the settings of a working directory's project are, and whether it is excluded.
    places: ExcludedPlaces


def distil(job: Job, place: Workplace, keeper: LeaseKeeper) -> None:
    """Work one claimed job of a session to its end; the ledger says how that was.

    Raises ``Snooze``, ``GiveBack``, ``LeaseLost`` and the errors of stores, transcripts and
    providers; the worker records them.
    """
    rollout = place.ledger.records.rollout(job.agent, job.session)
    resolver = Resolver(place.home, place.config.projects.worktrees)
    cwd = _started_in(job, place, rollout)
    places = ExcludedPlaces(resolver, place.config)
    attempt = _Attempt(job, place, keeper, resolver, cwd, places)
    _settle(attempt)
    seams.before("session.ingested")
    outcome = _ingest(attempt, rollout)
    attempt.resolver.remember()
    _credit(attempt)
    seams.reach("session.ingested")
    if outcome is not None:
        _complete(attempt, outcome)
        return
    if not _waiting(attempt):
        said_before = place.ledger.cursor(job.agent, job.session) > 0
        otherwise = "nothing.new" if said_before else "nothing.said"
        _complete(attempt, _outcome(attempt, otherwise))
        return
    seams.before("gates.asked")
    refusal = _refusal(attempt)
    seams.reach("gates.asked")
    if refusal is not None:
        _refuse(attempt, refusal)
        return
    while messages := _waiting(attempt):
        if _distil_slice(attempt, messages):
            return
        if makes_way(place, job) and _waiting(attempt):
            raise GiveBack
    _complete(attempt, _outcome(attempt, "nothing.durable"))


def _started_in(job: Job, place: Workplace, rollout: Rollout | None) -> str:
    """Where the agent was started, as far as anybody knows; words kept before are told it too."""
    if rollout is None or not rollout.transcript:
        return rollout.cwd if rollout is not None else ""
    found = directories(place.home, place.ledger, place.config, place.environ)
    transcript = Path(rollout.transcript)
    return rollout.cwd or started_in(job.agent, job.session, transcript, place.ledger, found)


def _complete(attempt: _Attempt, outcome: str) -> None:
    """End the job, with no word left where none is to be kept."""
    keep_nothing(attempt.place, attempt.job)
    attempt.place.ledger.complete(attempt.job, outcome)


# -- settle and ingest ---------------------------------------------------------------------------


def _settle(attempt: _Attempt) -> None:
    """Apply and advance a plan that a job of this session left behind."""
    place = attempt.place
    plan = standing_plan(place.home, place.ledger, attempt.job)
    if plan is not None:
        _apply(attempt, plan)


def _ingest(attempt: _Attempt, rollout: Rollout | None) -> str | None:
    """Bring the session history up to the cutoff; the outcome code where nothing follows."""
    from memoryd.sessions.agents import adapter_for
    from memoryd.sessions.ingest import ingest
    from memoryd.sessions.recognising import foreign

    job, place = attempt.job, attempt.place
    if rollout is not None and rollout.excluded is not None:
        return rollout.excluded  # since this job was made, or a person retried it all the same
    off = gates.all_off(place.environ)
    # What the person had forgotten must be known before a fork that repeats it is read.
    Forgetter(place.home, place.config, place.environ, place.ledger, place.history).catch_up(
        job.agent
    )
    _place_words(attempt)
    seq = place.ledger.cursor(job.agent, job.session)
    # With the session history lost as well, its messages get the numbers they had.
    anew = is_recovered(place.ledger, job.agent, job.session) and (
        place.history.progress(job.agent, job.session) is None
    )
    try:
        transcript = _transcript(attempt, rollout)
        found = ingest(
            place.history,
            adapter_for(job.agent),
            job.agent,
            job.session,
            transcript,
            job.cutoff,
            resolver=lambda cwd: attempt.resolver.resolve(cwd).key,
            exclude=lambda cwd: off or _is_excluded(attempt, cwd),
            seq_after=0 if anew else seq,
            cwd=attempt.cwd,
            recorded=lambda: _in_time(attempt),
        )
        if anew:
            place.history.number_after(job.agent, job.session, seq)
    except TranscriptGone:
        # What was ingested before it went can still be distilled.
        session = place.history.session(job.agent, job.session)
        return None if session is not None and session.messages else "transcript.gone"
    if off:
        return "memoryd.switched-off"
    if found.strange:
        raise foreign(job.agent, transcript, job.session)
    return None if found.kind == "root" else f"session.{found.kind}"


def _in_time(attempt: _Attempt) -> None:
    """Raise ``GiveBack`` where the slice's time is used up: another attempt goes on from there."""
    if attempt.keeper.seconds_left(attempt.job) < WRITING_SECONDS:
        raise GiveBack


def _place_words(attempt: _Attempt) -> None:
    """What was kept while nobody knew its directory belongs to that, now that it is known."""
    if attempt.cwd:
        job, project = attempt.job, attempt.resolver.resolve(attempt.cwd).key
        attempt.place.history.place(job.agent, job.session, attempt.cwd, project)


def _credit(attempt: _Attempt) -> None:
    """Credit what the assistant cited; what a crash repeats of it changes nothing."""
    job, place = attempt.job, attempt.place
    while found := place.history.citations(job.agent, job.session, CITATIONS):
        seams.before("citations.credited")
        for each in found:
            place.ledger.usage.credit(job.agent, job.session, each.notes, at_ms=each.at_ms)
        seams.reach("citations.credited")
        seams.before("citations.settled")
        place.history.settle_citations(job.agent, job.session, found[-1].number)
        seams.reach("citations.settled")


def _transcript(attempt: _Attempt, rollout: Rollout | None) -> Path:
    """Where the transcript is: as it was told, else where its agent keeps it now.

    Raises ``TranscriptGone``.
    """
    job, place = attempt.job, attempt.place
    told = Path(rollout.transcript) if rollout is not None and rollout.transcript else None
    if told is not None and not _is_gone(told):
        return told
    found = find_transcript(place.environ, job.agent, job.session)  # an agent may archive its own
    if found is None:
        raise TranscriptGone(f"session {job.session} of {job.agent} has no transcript any more")
    return found


def _is_gone(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # ingestion says what is wrong with it
    return False


def _is_excluded(attempt: _Attempt, cwd: str) -> bool:
    """Whether nothing said in ``cwd`` may be kept. Raises ``Snooze`` (``_readable``)."""
    with _readable(attempt):
        return attempt.places.is_excluded(cwd)


def _project_config(attempt: _Attempt, cwd: str) -> Config:
    """The configuration under the project of ``cwd``. Raises ``Snooze`` (``_readable``)."""
    with _readable(attempt):
        return attempt.places.settings(cwd)


@contextmanager
def _readable(attempt: _Attempt) -> Iterator[None]:
    """Raises ``Snooze`` where a project's own file is unusable.

    A project whose file cannot be read is not mined: its words wait until the file is mended.
    """
    try:
        yield
    except ConfigError as error:
        until = attempt.place.clock.now_ms() + PROJECT_CONFIG_WAIT_MS
        raise Snooze(until, "project.config-unusable", error.message) from error


# -- gates ---------------------------------------------------------------------------------------


def _refusal(attempt: _Attempt) -> Refusal | None:
    """The gates, on what of the waiting words may be distilled at all."""
    job, place = attempt.job, attempt.place
    refusal = gates.switches(job, place.config, place.environ)
    if refusal is not None:
        return refusal
    first = next((each for each in _all_waiting(attempt) if _is_open(attempt, each)), None)
    if first is None:
        return gates.nothing_open(job, any(_is_off(attempt, m) for m in _all_waiting(attempt)))
    config = _project_config(attempt, first.cwd or attempt.cwd)
    return gates.spoken(
        job,
        (each for each in _all_waiting(attempt) if _is_open(attempt, each)),
        config.memory.extract_every_n_runs,
        _so_far(attempt) if gates.waits(job) else gates.NOTHING_SO_FAR,
    )


def _so_far(attempt: _Attempt) -> SoFar:
    """What the gates of an extract ask about the session up to its cutoff."""
    job, place = attempt.job, attempt.place
    rollout = place.ledger.records.rollout(job.agent, job.session)
    return SoFar(
        runs=place.history.runs(job.agent, job.session, cutoff=job.cutoff),
        extracts=rollout.extracts if rollout is not None else 0,
        saved_seq=place.history.last_saved(job.agent, job.session, cutoff=job.cutoff),
        let_through=place.ledger.records.has_asked(job),
    )


def _is_off(attempt: _Attempt, message: StoredMessage) -> bool:
    """Whether the message's own project is not to be distilled, unless a person asked."""
    config = _project_config(attempt, message.cwd or attempt.cwd)
    return attempt.job.trigger != "cli" and not config.memory.auto_extract


def _is_open(attempt: _Attempt, message: StoredMessage) -> bool:
    """Whether a provider may see the message, as the settings of its own project are now."""
    return not _is_off(attempt, message) and not _is_excluded(attempt, message.cwd or attempt.cwd)


def _refuse(attempt: _Attempt, refusal: Refusal) -> None:
    """End the job with the gate's code; under a kill switch the words are passed over for good."""
    ledger, job = attempt.place.ledger, attempt.job
    if refusal.throttled:
        keep_nothing(attempt.place, job)
        ledger.throttle(job)
        logger().info("extract.waits", reason=refusal.code)
        return
    while refusal.leaves == "passed over" and (messages := _waiting(attempt)):
        _pass_over(attempt, messages[-1].seq)
    _complete(attempt, refusal.code)


# -- slices --------------------------------------------------------------------------------------


def _waiting(attempt: _Attempt, after: int | None = None) -> list[StoredMessage]:
    """The next messages between ``after`` (the cursor) and the job's cutoff, oldest first."""
    job, place = attempt.job, attempt.place
    if after is None:
        after = place.ledger.cursor(job.agent, job.session)
    return place.history.messages(job.agent, job.session, after, SLICE_MESSAGES, cutoff=job.cutoff)


def _all_waiting(attempt: _Attempt) -> Iterator[StoredMessage]:
    """All messages between the cursor and the job's cutoff, however many, a window at a time."""
    messages = _waiting(attempt)
    while messages:
        yield from messages
        messages = _waiting(attempt, messages[-1].seq)


def _distil_slice(attempt: _Attempt, messages: Sequence[StoredMessage]) -> bool:
    """Read one slice, record what it is to become, apply that, and move the cursor past it.

    True: nothing is left after it, and that ended the job.
    """
    job, ledger = attempt.job, attempt.place.ledger
    attempt.keeper.new_slice(job)
    shown = [_as_merged(attempt, each) for each in messages if _is_open(attempt, each)]
    if not shown:
        _pass_over(attempt, messages[-1].seq)
        return False
    attempt.place.calls.look()
    project = attempt.resolver.resolve(attempt.cwd).key
    chunks = slice_of(shown, project, attempt.place.clock.now_ms())
    first, last = ledger.cursor(job.agent, job.session) + 1, chunks[-1][-1]
    ledger.begin_slice(job, first, last.seq, last.project)
    take_in_edits(attempt.place, {message.project for chunk in chunks for message in chunk})
    seams.before("slice.read")
    read = read_slice(job, attempt.place, chunks, lambda: attempt.keeper.seconds_left(job))
    seams.reach("slice.read")
    attempt.place.history.sync()
    ledger.record_plan(job, read.plan, read.candidates)
    ends = (
        read.stopped is None
        and _keeps_words(attempt)
        and not _waiting(attempt, read.plan.scope.last)
    )
    _apply(attempt, read.plan, ends=ends)
    if read.stopped is not None:
        raise read.stopped
    return ends


def _keeps_words(attempt: _Attempt) -> bool:
    """Whether the session's words stay: else they go between its last slice and the job's end."""
    return attempt.place.config.sessions.store


def _pass_over(attempt: _Attempt, last: int) -> None:
    """Move the cursor past ``last`` without a look at what was said up to there."""
    job, place = attempt.job, attempt.place
    place.history.sync()
    first = place.ledger.cursor(job.agent, job.session) + 1
    place.ledger.advance(job, SliceRange(job.agent, job.session, first, last))


def _as_merged(attempt: _Attempt, message: StoredMessage) -> StoredMessage:
    """The message in the project that has the memory of its own by now: a merge moves what was
    said only after it has said where the memory is."""
    return replace(message, project=attempt.resolver.now(message.project))


def _apply(attempt: _Attempt, plan: Plan, *, ends: bool = False) -> None:
    """Write what the plan says and advance: the only place where a slice reaches the stores.

    ``ends``: the job ends with it.
    """
    place = attempt.place
    planned = place.ledger.records.planned_contents()
    applied = apply_plan(
        place.home,
        plan,
        clock=place.clock,
        planned=planned,
        spans=place.ledger.records.spans,
        statement=place.ledger.records.statement,
        wait_seconds=WRITER_WAIT_SECONDS,
    )
    _remember_projects(attempt, plan)
    fates = _with_sharers(place.ledger.records.candidates(plan.job), plan, applied.fates())
    outcome = _outcome(attempt, "nothing.durable", fates) if ends else None
    place.ledger.advance(attempt.job, plan.scope, outcome=outcome, **fates)


def _with_sharers(
    kept: Sequence[KeptCandidate], plan: Plan, fates: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """``fates`` with the facts that went into a file of another one: the plan names the first only.

    Nobody has looked whether a note has such a statement all the same: it is not simply dropped.
    """
    named = {operation.candidate for operation in plan.operations}
    planned = [each for each in kept if each.state == "planned"]
    found = {name: list(candidates) for name, candidates in fates.items()}
    for name, candidates in fates.items():
        files = {(each.store, each.path) for each in planned if each.id in candidates}
        sharers = [
            each.id for each in planned if each.id not in named and (each.store, each.path) in files
        ]
        if sharers:
            found.setdefault("review" if name == "changed" else name, []).extend(sharers)
    return found


def _remember_projects(attempt: _Attempt, plan: Plan) -> None:
    """Have each store that was written say whose it is: a long key does not hold its path.

    A plan that another process left is settled before anything was resolved: its messages say it.
    """
    known = plan.scope
    after, history = known.first - 1, attempt.place.history
    while after < known.last:
        found = history.messages(known.agent, known.session, after, SLICE_MESSAGES)
        for message in found:
            attempt.resolver.resolve(message.cwd or attempt.cwd)
        after = found[-1].seq if found else known.last
    seams.before("project.recorded")
    attempt.resolver.remember(each.store for each in plan.operations)
    seams.reach("project.recorded")


def _outcome(
    attempt: _Attempt, otherwise: str, fates: Mapping[str, Sequence[str]] | None = None
) -> str:
    """What came of the job over all its slices, as a code.

    ``fates`` are those of a slice that is about to be advanced past, whose candidates are planned.
    """
    kept = attempt.place.ledger.records.candidates(attempt.job.id)
    states = once_settled(kept, fates or {})
    if states & {"applied", "appended"}:
        return "notes.written"
    if "pending" in states:
        return "review.pending"
    return "nothing.durable" if states else otherwise
