"""``memoryd demo``: two finished sessions become notes, step by step, in a home of its own."""

from __future__ import annotations

import io
import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from memoryd.cli.common import printable
from memoryd.memory.errors import MemorydError

if TYPE_CHECKING:
    from memoryd.cli.demo_results import NotKept, Passed, ShownCommit, ShownNote
    from memoryd.cli.demo_stage import Stage, Staged
    from memoryd.jobs.job import Job


@click.command(epilog="Example: memoryd demo --keep")
@click.option("--keep", is_flag=True, help="Keep the temporary folder and say where it is.")
@click.option(
    "--examples",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder with claude-code.jsonl and codex.jsonl in place of the bundled ones.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def demo(keep: bool, examples: Path | None, as_json: bool) -> None:
    """Show memoryd at work on two bundled sessions: real hook, real daemon, temporary home.

    Needs no network, touches nothing of yours, and leaves nothing behind without --keep.
    """
    from memoryd.cli.demo_processes import stopping_daemon
    from memoryd.cli.demo_stage import stage

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # the sessions speak Arabic too
    try:
        with (
            _interruptible(),
            stage(examples, keep=keep) as (made, sessions),
            stopping_daemon(made),
        ):
            values = _play(made, sessions, _Teller(silent=as_json), keep)
    except BrokenPipeError:
        raise  # whoever read our output has seen enough; main() knows what to do
    except (OSError, subprocess.SubprocessError) as error:
        raise MemorydError(
            f"the demo could not run: {error}",
            hint="it needs a temporary folder it may write, and git; TMPDIR chooses the folder",
        ) from error
    if as_json:
        click.echo(json.dumps(values, ensure_ascii=False, indent=2))


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the demo as Ctrl-C does: tidied up."""

    def leave(number: int, frame: object) -> NoReturn:
        sys.exit(128 + number)

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, leave) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _play(made: Stage, sessions: Sequence[Staged], tell: _Teller, keep: bool) -> dict[str, Any]:
    """The demo from the first hook to the last word; what ``--json`` prints comes back."""
    from memoryd.cli import demo_processes as processes
    from memoryd.cli import demo_results as results
    from memoryd.daemon.client import Client

    first, second = sessions
    tell.opening(made, sessions)
    envelope = processes.first_envelope(made, first)
    tell.envelope(first, envelope)
    began = time.monotonic()
    processes.start_daemon(made)
    tell.started(made, time.monotonic() - began)
    jobs = [(first, processes.finished_job(made, first))]
    processes.run_hook(made, second)
    jobs.append((second, processes.finished_job(made, second)))
    tell.jobs(jobs)
    notes = results.notes(made, jobs)
    tell.notes(notes)
    not_kept, passed = results.not_kept(made, jobs)
    tell.not_kept(not_kept, passed)
    commits = results.commits(made)
    tell.commits(commits)
    status = Client(made.home.socket(made.environ)).status()
    tell.status(made)
    if processes.stop_daemon(made) != 0:
        raise processes.daemon_failed(made, "the daemon did not stop as it should")
    tell.closing(made, jobs, keep)
    return {
        "envelope": envelope,
        "jobs": [_job_values(staged, job) for staged, job in jobs],
        "notes": [asdict(note) for note in notes],
        "not_kept": [asdict(one) for one in not_kept],
        "passed_over": [asdict(one) for one in passed],
        "commits": [asdict(commit) for commit in commits],
        "status": status,
        "kept": str(made.root) if keep else None,
    }


def _job_values(staged: Staged, job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.kind,
        "agent": staged.agent,
        "session": staged.session,
        "status": job.status,
        "outcome": job.outcome_code,
        "attempt": job.attempt,
    }


class _Teller:
    """Prints the steps for a person; says nothing where ``silent``."""

    def __init__(self, *, silent: bool) -> None:
        self._silent = silent
        self._step = 0

    def _head(self, text: str) -> None:
        self._step += 1
        self._say(f"\n{self._step}. {text}\n")

    def _say(self, text: str) -> None:
        if not self._silent:
            click.echo(printable(text))

    def opening(self, made: Stage, sessions: Sequence[Staged]) -> None:
        """Where everything is."""
        self._say(f"memoryd demo: all of it happens in {made.root}")
        self._head("Two sessions in a small project have come to their end")
        for staged in sessions:
            place = staged.transcript.relative_to(made.root)
            self._say(f"   {staged.agent:<12} {staged.lines} lines in {place}")

    def envelope(self, staged: Staged, envelope: dict[str, object]) -> None:
        """What the hook leaves."""
        self._head(f"{staged.agent} calls the hook, which leaves one envelope and is gone")
        for key, value in envelope.items():
            self._say(f"   {key:<11} {json.dumps(value)}")
        self._say("   Not a word of what was said is in it, and no daemon was needed.")

    def started(self, made: Stage, seconds: float) -> None:
        """The daemon is there."""
        assert made.daemon is not None
        self._head("The daemon starts and takes the envelope in; then the second session ends")
        self._say(
            f"   pid {made.daemon.pid}, ready after {seconds:.1f} s; the new file is the ring"
        )

    def jobs(self, jobs: Sequence[tuple[Staged, Job]]) -> None:
        """One job a session."""
        self._head("Each envelope has become one job in the ledger")
        for staged, job in jobs:
            took = ((job.finished_at or 0) - (job.started_at or 0)) / 1000
            came = f"{job.status} ({job.outcome_code}) in {took:.1f} s"
            self._say(f"   {job.id[-8:]}  {job.kind}  {staged.agent:<12} {came}")

    def notes(self, notes: Sequence[ShownNote]) -> None:
        """What is remembered, and what was said for it."""
        self._head(f"{len(notes)} notes were written, each from a sentence of a person")
        for note in notes:
            self._say(f"   {note.path}")
            self._say(f"      note  {note.statement}")
            for sentence in note.sentences:
                self._say(f"      said  {sentence}   ({note.agent})")
        self._say("\n   One of the files, as it is on the disk:\n")
        self._say("\n".join(f"      {line}" for line in notes[0].file.rstrip().splitlines()))

    def not_kept(self, words: Sequence[NotKept], passed: Sequence[Passed]) -> None:
        """What is not remembered."""
        self._head("Not kept, and why")
        for one in words:
            self._say(f"   {one.words}\n      {one.why}   ({one.agent})")
        for session in passed:
            lines = sum(session.skipped.values())
            self._say(
                f"   {session.agent}: {session.messages} messages of the assistant prove nothing"
                f" about a person; {lines} lines (tools, thinking, injected) are no words of theirs"
            )

    def commits(self, commits: Sequence[ShownCommit]) -> None:
        """The history of the memory."""
        self._head("Every change is a commit: `git log` in the folder of the notes")
        for folder in dict.fromkeys(commit.folder for commit in commits):
            self._say(f"   {folder}")
        for commit in commits:
            self._say(f"   {commit.id[:8]}  {commit.author}  {commit.subject}")

    def status(self, made: Stage) -> None:
        """What `memoryd status` says."""
        self._head("memoryd status")
        if not self._silent:
            self._say("\n".join(f"   {line}" for line in made.run("status").splitlines()))

    def closing(self, made: Stage, jobs: Sequence[tuple[Staged, Job]], keep: bool) -> None:
        """How to take it back, and how to go on."""
        from memoryd.cli.demo_processes import hook_command

        home = f"--home {shlex.quote(str(made.home.root))} " if keep else ""
        hook = shlex.join([*hook_command(), "claude-code", "session-end"])
        self._head("Taking it back")
        self._say(f"   memoryd {home}memory undo {jobs[-1][1].id[-8:]}   all that one job wrote")
        self._say(f"   memoryd {home}memory delete NAME     one note, not learned again")
        self._head("With your own sessions")
        self._say("   memoryd service install          run it in the background, from login on")
        self._say("   and in ~/.claude/settings.json (for Codex: ~/.codex/hooks.json, codex):")
        self._say(f"      {_settings(hook)}")
        self._say("   Or one session you already have, without any hook:")
        self._say("   memoryd enqueue finalize --agent claude-code --transcript FILE --wait")
        left = f"is kept in {made.root}" if keep else "is removed now"
        self._say(f"\nThe daemon has stopped; everything {left}.")


def _settings(hook: str) -> str:
    """The hook's line for an agent's settings."""
    command = {"type": "command", "command": hook, "timeout": 5}
    return json.dumps({"hooks": {"SessionEnd": [{"hooks": [command]}]}})
