"""Ingestion: from a transcript's items to the session history's messages, in flat memory.

Reads from where it stopped to the cutoff. What was read before is known by its marks: where they do
not match, or the file became shorter, the transcript was rewritten and is read again from its
beginning, and only what is new gets added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import msgspec

from memoryd.memory.errors import HistoryError
from memoryd.sessions.adapter import (
    Adapter,
    Message,
    Parsed,
    SessionKind,
    State,
    Tally,
    ToolRun,
    ToolTally,
    is_strange,
)
from memoryd.sessions.history import History
from memoryd.sessions.keeping import Keeper, Redact
from memoryd.sessions.source import Opened
from memoryd.sessions.stored import Batch, Event, Progress, RollBack, Saved

#: What one transaction records at most: messages, their characters, and bytes read.
BATCH_MESSAGES = 500
BATCH_CHARACTERS = 4 * 1024 * 1024
BATCH_BYTES = 64 * 1024 * 1024
#: How often a reader begins anew because another ingested the same session meanwhile.
RACES = 5


def _nothing() -> None:
    """Nobody asks how far it came."""


@dataclass(frozen=True)
class Ingested:
    """What one ingestion did; ``position`` and ``kind`` as they stand after it.

    ``new_messages`` and ``user_messages`` were added (a long message counts once) and have ``seq``
    from ``first_seq`` to ``last_seq`` (0 and the last ever given when none); ``skipped`` counts
    lines and messages that were not kept, by reason; ``redacted`` secrets; ``cited`` names the
    notes the assistant said it used; ``strange`` that lines are there and none of them is the
    agent's, so that the next ingestion begins anew.
    """

    new_messages: int
    user_messages: int
    bad_lines: int
    skipped: dict[str, int]
    position: int
    kind: SessionKind
    redacted: int
    first_seq: int
    last_seq: int
    cited: tuple[str, ...]
    strange: bool = False


def ingest(
    history: History,
    adapter: Adapter,
    agent: str,
    session: str,
    transcript: Path,
    cutoff: int | None,
    *,
    resolver: Callable[[str], str],
    exclude: Callable[[str], bool],
    redact: Redact | None = None,
    seq_after: int = 0,
    cwd: str = "",
    recorded: Callable[[], object] = _nothing,
) -> Ingested:
    """Bring the session's messages up to ``cutoff`` of its transcript into ``history``.

    ``cutoff`` is a position (``sessions/source.py``); None means as long as it is now. ``resolver``
    gives the project key of a working directory, ``exclude`` says that nothing said in one may be
    kept; both are asked about ``cwd`` where a message says none, which may be empty. ``redact`` is
    the scanner's unless another is given. ``seq_after`` is the highest ``seq`` that a cursor holds:
    new messages come after it, even into a history that was lost and is made anew. ``recorded`` is
    called after each transaction that more may follow, and may raise to end it there. Raises
    ``TranscriptGone``, ``TranscriptBusy``, ``TranscriptError`` and ``HistoryError``; what was
    committed before stays, and the next call goes on from there.
    """
    if redact is None:
        from memoryd.memory.scanner import redact as scanner_redact

        redact = scanner_redact
    keeper = Keeper(resolver, exclude, redact, cwd)
    run = _Run(history, adapter, agent, session, transcript, keeper, seq_after, recorded)
    with adapter.open(transcript, session) as opened:
        for _ in range(RACES):
            if run.read(opened, cutoff):
                return run.ingested()
    raise HistoryError(
        f"session {session} of {agent} is being ingested elsewhere",
        hint="try again when it is done",
    )


@dataclass
class _Place:
    """How far a reading of the transcript came, and what it counted since its beginning."""

    state: State
    position: int = 0
    reading: int = 1
    head: str = ""
    tail: str = ""
    tally: Tally = field(default_factory=Tally)
    bad_lines: int = 0
    tools: ToolTally = field(default_factory=ToolTally)


@dataclass
class _Draft:
    """What the next transaction will record."""

    begun: int
    events: list[Event] = field(default_factory=list)
    characters: int = 0
    active_ms: int | None = None
    #: When the transcript was written to, where something says no time.
    written_ms: int = 0
    tally: Tally = field(default_factory=Tally)
    #: Lines that say nothing but why, and which tools ended: counted together, most are equal.
    passed: list[Parsed] = field(default_factory=list)
    runs: dict[ToolRun, int] = field(default_factory=dict)
    bad_lines: int = 0
    full: bool = False
    #: Something was read since a mark was made last.
    unmarked: bool = False

    def add(self, event: Event, characters: int = 0) -> None:
        """Add what happened next; ``full`` then says whether to record before more is read."""
        self.events.append(event)
        self.characters += characters
        self.full = len(self.events) >= BATCH_MESSAGES or self.characters >= BATCH_CHARACTERS

    def count(self) -> None:
        """Count what was passed over since this was last asked for."""
        kinds = {id(parsed): parsed for parsed in self.passed}
        for kind, count in Counter(map(id, self.passed)).items():
            parsed = kinds[kind]
            if parsed.skipped:
                self.tally.add(parsed.skipped, count)
            for run in parsed.tools:
                self.runs[run] = self.runs.get(run, 0) + count
        self.passed.clear()


class _Run:
    """One ingestion: what it has added so far, over all its transactions."""

    def __init__(
        self,
        history: History,
        adapter: Adapter,
        agent: str,
        session: str,
        transcript: Path,
        keeper: Keeper,
        seq_after: int,
        recorded: Callable[[], object],
    ) -> None:
        self._history = history
        self._adapter = adapter
        self._agent, self._session, self._transcript = agent, session, transcript
        self._keeper = keeper
        self._seq_after = seq_after
        self._recorded = recorded
        self._place = _Place(State())
        self._tally = Tally()
        #: A directory, and whether anything that happened in it counts.
        self._counted = ("\0", False)
        self._bad_lines = self._messages = self._user_messages = self._first_seq = 0

    def read(self, opened: Opened, cutoff: int | None) -> bool:
        """Read on to ``cutoff``; False when another moved the session's position meanwhile."""
        stored = self._history.progress(self._agent, self._session)
        place = self._place = self._begin(opened, stored)
        draft = _Draft(place.position)
        data: bytes | None = None
        for end, data in opened.read(place.position, cutoff):
            if data is None:
                draft.tally.add("too-long")
            else:
                self._take(data, end, draft, opened)
            place.position = end
            draft.unmarked = True
            if draft.full or end - draft.begun >= BATCH_BYTES:
                place.tail = opened.tail(data, end)
                if not self._record(stored, draft):
                    return False
                self._recorded()
                stored, draft = _as_progress(place), _Draft(end)
        if draft.unmarked:
            place.tail = opened.tail(data, place.position)
        if stored is None or (place.position, place.reading) != (stored.position, stored.reading):
            return self._record(stored, draft)
        return True

    def ingested(self) -> Ingested:
        """What this ingestion did."""
        place = self._place
        return Ingested(
            new_messages=self._messages,
            user_messages=self._user_messages,
            bad_lines=self._bad_lines,
            skipped=self._tally.by_reason,
            position=place.position,
            kind=place.state.kind,
            redacted=self._keeper.redacted,
            first_seq=self._first_seq,
            last_seq=self._history.last_seq(self._agent, self._session),
            cited=tuple(self._keeper.cited),
            strange=self._is_strange(place.tally.by_reason, place.bad_lines, place.tools.by_tool),
        )

    def _is_strange(
        self, skipped: Mapping[str, int], bad_lines: int, tools: Mapping[str, object]
    ) -> bool:
        """Whether the transcript, as far as it was read, is none of its agent's."""
        if tools or not is_strange(self._adapter, skipped, bad_lines):
            return False
        return not self._history.last_seq(self._agent, self._session)

    def _begin(self, opened: Opened, stored: Progress | None) -> _Place:
        """Where reading goes on: where it stopped, or at 0 where the transcript was rewritten."""
        if stored is None:
            return _Place(self._adapter.start(self._session, self._transcript))
        # A reading without a state was begun anew by who dropped what it had read. Where nothing
        # was understood, another file or a newer reader may make something of it.
        strange = self._is_strange(stored.skipped, stored.bad_lines, stored.tools)
        holds = not strange and opened.holds(stored.position, stored.head, stored.tail)
        if not stored.state or not holds:
            state = self._adapter.start(self._session, self._transcript)
            # A transcript cut at its beginning must not make a call of ours of a person's session.
            if stored.state:
                state.first = msgspec.json.decode(stored.state, type=State).first
            return _Place(state, reading=stored.reading + 1)
        return _Place(
            msgspec.json.decode(stored.state, type=State),
            stored.position,
            stored.reading,
            stored.head,
            stored.tail,
            Tally(stored.skipped),
            stored.bad_lines,
            ToolTally(stored.tools),
        )

    def _take(self, data: bytes, end: int, draft: _Draft, opened: Opened) -> None:
        """Take in one item, which ends at ``end``."""
        place = self._place
        if place.position == 0:
            place.head = opened.head(data)
        parsed = self._adapter.parse(data, place.state)
        if parsed.tools and not self._may_count(place.state):
            parsed = replace(parsed, tools=())
        if parsed.skipped or parsed.tools:
            draft.passed.append(parsed)
        if parsed.messages or not parsed.skipped or parsed.rolled_back or parsed.saved:
            self._understand(parsed, end, draft)

    @cached_property
    def _written_ms(self) -> int:
        """When the transcript was last written to: whatever says no time was said by then."""
        look = self._adapter.look(self._transcript, self._session)
        return look.active_ms if look is not None else 0

    def _may_count(self, state: State) -> bool:
        """Whether tools that ran in the present directory are counted; asked of most lines."""
        if state.cwd != self._counted[0] or state.kind != "root":
            self._counted = (state.cwd, not self._keeper.excluded(state))
        return self._counted[1]

    def _understand(self, parsed: Parsed, end: int, draft: _Draft) -> None:
        if parsed.bad:
            draft.bad_lines += 1
        if parsed.rolled_back:
            draft.add(RollBack(parsed.rolled_back))
        for message in parsed.messages:
            self._add(message, end, draft)
        if parsed.saved and not self._keeper.excluded(self._place.state):
            for call in parsed.saved:
                draft.add(Saved(call, end))

    def _add(self, message: Message, end: int, draft: _Draft) -> None:
        draft.active_ms = max(draft.active_ms or 0, message.at_ms or 0) or None
        if message.at_ms is None:
            draft.written_ms = self._written_ms
        kept = self._keeper.keep(message, self._place.state, end)
        for cited in self._keeper.new_citations():
            draft.add(cited)
        if isinstance(kept, str):
            draft.tally.add(kept)
            return
        draft.add(kept, sum(map(len, kept.parts)))

    def _record(self, stored: Progress | None, draft: _Draft) -> bool:
        place = self._place
        draft.count()
        place.bad_lines += draft.bad_lines
        place.tally.add_all(draft.tally)
        place.tools.add_all(draft.runs)
        batch = Batch(
            events=tuple(draft.events),
            position=place.position,
            reading=place.reading,
            head=place.head,
            tail=place.tail,
            state=place.state,
            tally=place.tally,
            bad_lines=place.bad_lines,
            last_active_ms=draft.active_ms,
            written_ms=draft.written_ms,
            tools=place.tools,
        )
        names = (self._agent, self._session, self._transcript)
        done = self._history.record(*names, stored, batch, seq_after=self._seq_after)
        if done is None:
            return False
        if done.copied:
            draft.tally.add("copied", done.copied)
        self._tally.add_all(draft.tally)
        self._bad_lines += draft.bad_lines
        self._messages += done.messages
        self._user_messages += done.user_messages
        self._first_seq = self._first_seq or done.first_seq
        return True


def _as_progress(place: _Place) -> Progress:
    """What was just recorded, as the guard of the next transaction."""
    return Progress(position=place.position, reading=place.reading)
