"""A real model of this machine, from a finished session to notes: nothing false is written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest
from processes import MEMORYD, World

from memoryd.jobs.records import KeptCandidate
from memoryd.memory.notes import parse
from memoryd.memory.text import fold

LIMIT_SECONDS = 1200
pytestmark = [pytest.mark.model, pytest.mark.timeout(LIMIT_SECONDS)]

SAID = (
    "We use pnpm for packages in this project, not npm.",
    "The staging database listens on port 5433.",
    "Please remember that I prefer tabs over spaces.",
)
ANSWERED = "Understood, I will keep to that."
#: How a job may stand after a model that answers badly, slowly or not at all.
_ENDS = {
    ("completed", "notes.written"),
    ("completed", "review.pending"),
    ("completed", "nothing.durable"),
    ("retrying", "answer.unusable"),
    ("waiting", "provider.unavailable"),
}


def test_whatever_a_small_model_says_nothing_false_is_written(world: World, model_url: str) -> None:
    """Each note stands on exact words of the person's; a bad answer is a failure and no note."""
    world.configure(
        "[provider]\n"
        f'name = "openai"\nmodel = "smollm2"\nbase_url = "{model_url}"\n'
        "timeout_seconds = 540\n"
    )
    world.envelope(world.claude(*SAID, answer=ANSWERED))
    began = time.monotonic()

    done = subprocess.run(
        [*MEMORYD, "run", "--once"],
        env={**os.environ, **world.environ},
        cwd=world.project,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )

    assert done.returncode == 0, done.stderr
    job = world.job()
    why = job.outcome_code or job.wait_reason or job.error_code
    with world.ledger() as ledger:
        kept = ledger.records.candidates(job.id)
        calls = [
            (one.calls, one.input_tokens, one.output_tokens) for one in ledger.records.attempts(job)
        ]
        spent = ledger.budget.today("openai")
    seconds = round(time.monotonic() - began)
    sys.stdout.write(
        f"\n{job.shown_status}, {why}: {job.error_detail}; {seconds} s; calls {calls}; {spent}\n"
    )
    for each in kept:
        sys.stdout.write(
            f"  {each.decision} {each.reason} {each.state}: {each.statement!r} {each.evidence}\n"
        )
    assert (job.shown_status, why) in _ENDS
    assert 1 <= spent.calls <= 2
    assert job.failures == (job.shown_status == "retrying")
    written = [each for each in kept if each.state in {"applied", "appended"}]
    for each in written:
        assert_said(each)
        assert_of_what_was_said(each.statement)
    if written:
        assert len(world.notes()) <= len(written)
        for path, text in world.notes().items():
            note = parse(text.encode(), path)
            assert_of_what_was_said(note.description)
            assert_of_what_was_said(note.body)
        assert world.is_clean()
    else:
        assert list((world.home.root / "projects").glob("*/memory/*/*.md")) == []


def assert_said(candidate: KeptCandidate) -> None:
    """It stands on the person's own words, exactly."""
    assert candidate.evidence
    for _, _, span in candidate.evidence:
        assert any(fold(span) in fold(said) for said in SAID), candidate


def assert_of_what_was_said(text: str) -> None:
    """No number or name of ``text`` stands nowhere in the transcript, nor do all of its words."""
    heard = fold(" ".join((*SAID, ANSWERED))).casefold()
    for value in re.findall(r"\d+|(?<=[a-z,] )[A-Z]\w+", text):
        assert value.casefold() in heard, text
    begins = {word[:4] for word in re.findall(r"\w{4,}", text.casefold())}
    common = {"pref", "user", "this", "that", "with", "they", "proj", "reme", "plea"}
    assert any(f" {begin}" in heard for begin in begins - common), text
