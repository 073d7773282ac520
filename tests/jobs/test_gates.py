"""Whether a session is distilled now: pure decisions, and what becomes of the words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from builders import enqueue as make
from builders import open_ledger

from memoryd.jobs import gates
from memoryd.jobs.gates import Refusal, SoFar
from memoryd.jobs.job import Job
from memoryd.memory.config import Config, CurationSettings
from memoryd.memory.testing import FakeClock

LONG = "the parser of the configuration file is what we are talking about here, again and again "


@dataclass(frozen=True)
class Said:
    """A message as a gate sees it."""

    role: str
    text: str
    id: str = "m"
    seq: int = 1


@pytest.fixture
def extract(tmp_path: Path, clock: FakeClock) -> Job:
    """An extract made by the end of a run."""
    ledger = open_ledger(tmp_path, clock)
    return make(ledger, kind="extract", reason="stop")


@pytest.fixture
def finalize(tmp_path: Path, clock: FakeClock) -> Job:
    """A finalize made by the end of a session."""
    return make(open_ledger(tmp_path, clock))


def runs(count: int) -> list[Said]:
    """That many runs about one topic."""
    return [Said(role, LONG + str(at)) for at in range(count) for role in ("user", "assistant")]


@pytest.mark.parametrize("value", ["1", "true", "YES", " on "])
@pytest.mark.parametrize("name", ["MEMORYD_DISABLE", "MEMORYD_DISABLE_EXTRACTION"])
def test_a_kill_switch_passes_the_words_over(finalize: Job, name: str, value: str) -> None:
    """Also where a person asked by hand."""
    asked = finalize._replace(trigger="cli")

    for job in (finalize, asked):
        refusal = gates.switches(job, Config(), {name: value})
        assert refusal == Refusal("extraction.switched-off", "passed over")


@pytest.mark.parametrize("value", ["", "0", "false", "no"])
def test_a_switch_that_is_not_on_is_off(finalize: Job, value: str) -> None:
    """``MEMORYD_DISABLE=0`` disables nothing."""
    assert gates.switches(finalize, Config(), {"MEMORYD_DISABLE": value}) is None
    assert not gates.all_off({"MEMORYD_DISABLE": value})


def test_only_the_switch_for_all_stops_ingestion() -> None:
    """Without extraction a session can still be searched."""
    assert gates.all_off({"MEMORYD_DISABLE": "1"})
    assert not gates.all_off({"MEMORYD_DISABLE_EXTRACTION": "1"})


@pytest.mark.parametrize(
    ("changes", "kind", "reason", "code"),
    [
        ({"mode": "manual"}, "finalize", "end", "curation.manual"),
        ({"audit_on_session_end": False}, "finalize", "end", "curation.session-end-off"),
        ({"audit_on_compact": False}, "extract", "compact", "curation.compact-off"),
        ({"audit_on_compact": False}, "extract", "stop", None),
        ({"audit_on_session_end": False}, "extract", "compact", None),
        ({"mode": "review"}, "finalize", "end", None),
    ],
)
def test_settings_leave_the_words_waiting(
    finalize: Job, changes: dict[str, object], kind: str, reason: str, code: str | None
) -> None:
    """Each for its own occasion; a person's own request is never refused by a setting."""
    config = Config(curation=replace(CurationSettings(), **changes))  # type: ignore[arg-type]
    job = finalize._replace(kind=kind, reason=reason)

    refusal = gates.switches(job, config, {})

    assert refusal == (None if code is None else Refusal(code))
    assert gates.switches(job._replace(trigger="cli"), config, {}) is None


def test_an_extract_waits_for_its_interval(extract: Job) -> None:
    """Seven runs of one topic are too few, eight are enough."""
    assert gates.spoken(extract, runs(7), 8) == Refusal("extract.throttled", throttled=True)
    assert gates.spoken(extract, runs(8), 8) is None


def test_an_extract_does_not_wait_when_the_topic_changes(extract: Job) -> None:
    """What was said before is complete."""
    other = [Said("user", "please paint my garden shed green tomorrow"), Said("assistant", "Ok.")]

    assert gates.spoken(extract, runs(2) + other, 8) is None


def test_the_first_run_is_no_change_of_topic(extract: Job) -> None:
    """There is nothing it could differ from."""
    said = [Said("user", LONG * 3), Said("assistant", "Yes.")]

    assert gates.spoken(extract, said, 8) == Refusal("extract.throttled", throttled=True)


@pytest.mark.parametrize(
    "said",
    [
        [Said("user", "x" * 199)],
        [Said("user", "x" * 500)],
        [Said("user", "x" * 100), Said("assistant", "y" * 99)],
    ],
)
def test_an_extract_that_is_too_short_waits(extract: Job, said: list[Said]) -> None:
    """Under 200 characters or two turns."""
    assert gates.spoken(extract, said, 1) == Refusal("extract.too-short", throttled=True)


def test_a_long_message_is_one_run(extract: Job) -> None:
    """However many parts it is kept in."""
    parts = [Said("user", LONG * 80, "u1"), *(Said("user", LONG, f"u1#{n}") for n in range(2, 30))]

    refusal = gates.spoken(extract, [*parts, Said("assistant", "Read.")], 8)

    assert refusal == Refusal("extract.throttled", throttled=True)


def test_a_finalize_needs_one_word_of_a_person(finalize: Job) -> None:
    """A short session is distilled too; one without a person is not."""
    assert gates.spoken(finalize, [Said("user", "Use tabs.")], 8) is None
    assert gates.spoken(finalize, [Said("assistant", "x" * 999)], 8) == Refusal("nothing.said")


def test_a_finalize_looks_no_further_than_it_must(finalize: Job) -> None:
    """The first word of a person is enough."""

    def endless() -> Iterator[Said]:
        while True:
            yield Said("user", "Use tabs.")

    assert gates.spoken(finalize, endless(), 8) is None


@pytest.mark.parametrize("changes", [{"reason": "compact"}, {"trigger": "cli"}])
def test_compaction_and_a_persons_request_do_not_wait(
    extract: Job, changes: dict[str, str]
) -> None:
    """The words would be gone, or somebody waits."""
    assert gates.spoken(extract._replace(**changes), [Said("user", "Use tabs.")], 8) is None


def test_a_persons_own_extract_leaves_its_row(extract: Job) -> None:
    """Who asked can look at it."""
    asked = extract._replace(trigger="cli")

    assert gates.spoken(asked, [Said("assistant", "Hm.")], 8) == Refusal("nothing.said")


# -- the agent's own saves, and how often a session may ask ---------------------------------------


def numbered(said: list[Said]) -> list[Said]:
    """The same with the ``seq`` of a session from its beginning."""
    return [replace(each, seq=seq) for seq, each in enumerate(said, 1)]


def test_a_run_in_which_the_agent_saved_memory_itself_is_skipped(extract: Job) -> None:
    """Whatever else would speak for reading it: the interval, the topic."""
    other = [Said("user", "please paint my garden shed green tomorrow"), Said("assistant", "Ok.")]

    for said in (numbered(runs(8)), numbered(runs(7) + other)):
        so_far = SoFar(runs=8, saved_seq=16)
        assert gates.spoken(extract, said, 8, so_far) == Refusal(
            "extract.saved-by-agent", throttled=True
        )


def test_the_counter_starts_anew_after_the_agents_own_save(extract: Job) -> None:
    """Eight runs later it is due, with all that waited."""
    for count, code in ((7, "extract.throttled"), (8, None)):
        refusal = gates.spoken(
            extract, numbered(runs(5 + count)), 8, SoFar(runs=5 + count, saved_seq=10)
        )
        assert refusal == (None if code is None else Refusal(code, throttled=True))


def test_a_change_of_topic_counts_against_the_run_of_the_agents_own_save(extract: Job) -> None:
    """That run's words are remembered."""
    other = [Said("user", "please paint my garden shed green tomorrow"), Said("assistant", "Ok.")]
    said = numbered(runs(1) + other)

    assert gates.spoken(extract, said, 8, SoFar(runs=2, saved_seq=2)) is None


@pytest.mark.parametrize("answer", ["yes", "go on", "👍", "...", "好的"])
def test_a_short_answer_is_no_change_of_topic(extract: Job, answer: str) -> None:
    """It is about what was said before, and does not hide it."""
    said = [*runs(2), Said("user", answer), Said("assistant", LONG)]

    assert gates.spoken(extract, said, 8) == Refusal("extract.throttled", throttled=True)
    assert gates.spoken(extract, said + runs(1), 8) == Refusal("extract.throttled", throttled=True)


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (
            "نستخدم قاعدة بيانات واحدة في الخادم",
            "هل تعمل قاعدة بيانات الخادم الآن",
            "اطبخ العشاء مع الرز مساء الغد",
        ),
        ("データベースの設定を変更する", "データベースの設定を確認する", "明日の天気はどうですか"),
        ("Le café est très bon ici", "le cafe est bon", "réparer la voiture rouge demain"),
    ],
)
def test_a_topic_is_known_in_every_script(extract: Job, one: str, same: str, other: str) -> None:
    """Words of any language count, whatever their accents."""
    answer = Said("assistant", LONG * 3)

    def refusal(second: str) -> Refusal | None:
        return gates.spoken(
            extract, [Said("user", one), answer, Said("user", second), answer], 8, SoFar(runs=2)
        )

    assert refusal(same) == Refusal("extract.throttled", throttled=True)
    assert refusal(other) is None


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        (8, {1: 1, 10: 1, 11: 2, 16: 2, 20: 2, 21: 3, 24: 3, 40: 5}),
        (1, {1: 1, 2: 2, 20: 20}),
        (4, {1: 1, 5: 1, 6: 2, 20: 5}),
        (10_000, {1: 1, 10_000: 1}),
    ],
)
def test_the_calls_of_a_session_are_bounded_by_its_runs(
    every: int, expected: dict[int, int]
) -> None:
    """Never fewer than the interval itself gives; with 8, two in 20."""
    assert {runs: gates.calls_allowed(runs, every) for runs in expected} == expected


def test_a_session_that_had_its_calls_waits(extract: Job) -> None:
    """With a change of topic, and with its interval."""
    other = [Said("user", "please paint my garden shed green tomorrow"), Said("assistant", "Ok.")]
    enough = Refusal("extract.enough-calls", throttled=True)

    assert gates.spoken(extract, runs(2) + other, 8, SoFar(runs=10, extracts=1)) == enough
    assert gates.spoken(extract, runs(8), 8, SoFar(runs=10, extracts=1)) == enough
    assert gates.spoken(extract, runs(2) + other, 8, SoFar(runs=11, extracts=1)) is None


def test_an_extract_that_was_let_through_once_is_let_through_again(extract: Job) -> None:
    """Its own call is not held against its second attempt."""
    so_far = SoFar(runs=2, extracts=1, let_through=True)

    assert gates.spoken(extract, runs(1), 8, so_far) is None


def test_a_finalize_waits_for_nothing_but_words(finalize: Job) -> None:
    """Not for an interval, the agent's own save, the calls so far, or more words."""
    so_far = SoFar(runs=1, extracts=9, saved_seq=9)

    assert gates.spoken(finalize, [Said("user", "Use tabs.")], 8, so_far) is None
    assert gates.spoken(finalize, [Said("assistant", "Hm.")], 8, so_far) == Refusal("nothing.said")
