"""A builder for the working side: a home, its clock, transcripts, a provider, and one worker."""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from memoryd.jobs.job import Job
from memoryd.jobs.keeper import LeaseKeeper
from memoryd.jobs.ledger import Enqueued
from memoryd.jobs.records import KeptCandidate
from memoryd.jobs.worker import Worker
from memoryd.jobs.workplace import Workplace, open_workplace
from memoryd.memory import seams
from memoryd.memory.baseline import Baseline
from memoryd.memory.clock import iso
from memoryd.memory.config import Config
from memoryd.memory.files import FILE_MODE
from memoryd.memory.home import Home
from memoryd.memory.projects import Resolver
from memoryd.memory.providers.base import Provider, Request
from memoryd.memory.store import Store
from memoryd.memory.testing import FakeClock, ScriptedModel

DAY = 24 * 3600
#: What a model says when there is nothing to say.
NOTHING = '{"facts": []}'
#: Looks like a key and is none; in pieces, so that no scanner trips on this file.
SECRET = "sk-" + "ant-api03-" + "Q7w9" * 12


class Stopped(BaseException):
    """The process died at a seam: nothing of ours may catch it."""


@dataclass
class Transcript:
    """An agent's record of one session, written line by line."""

    agent: str
    session: str
    path: Path
    cwd: Path
    at_ms: int
    lines: int = 0

    def user(self, text: str, **changes: object) -> Transcript:
        """A person says ``text``."""
        return self._message("user", text, changes)

    def assistant(self, text: str, **changes: object) -> Transcript:
        """The agent answers ``text``."""
        return self._message("assistant", text, changes)

    def tool_result(self, output: str) -> Transcript:
        """A tool's output, which agents record as the user's."""
        if self.agent == "codex":
            payload = {"type": "function_call_output", "call_id": "c", "output": output}
            return self.line({"type": "response_item", "payload": payload, "timestamp": self._at()})
        block = {"type": "tool_result", "tool_use_id": "t", "content": output}
        return self._message("user", [block], {})

    def call(
        self, tool: str, arguments: Mapping[str, object], *, failed: bool = False
    ) -> Transcript:
        """The agent calls a tool, and the tool answers."""
        call = f"call_{self.lines}"
        if self.agent == "codex":
            item = {"call_id": call, "name": tool, "arguments": json.dumps(arguments)}
            self._item({"type": "function_call", **item})
            output = f"Process exited with code {int(failed)}\nOutput:\n"
            return self._item({"type": "function_call_output", "call_id": call, "output": output})
        block = {"type": "tool_use", "id": call, "name": tool, "input": arguments}
        self._message("assistant", [block], {})
        result = {"type": "tool_result", "tool_use_id": call, "content": "", "is_error": failed}
        return self._message("user", [result], {})

    def _item(self, payload: Mapping[str, object]) -> Transcript:
        return self.line({"timestamp": self._at(), "type": "response_item", "payload": payload})

    def line(self, value: object) -> Transcript:
        """One whole line of JSON."""
        return self.raw(json.dumps(value).encode() + b"\n")

    def raw(self, data: bytes) -> Transcript:
        """Bytes as they are: a broken line, half a line."""
        with self.path.open("ab") as file:
            file.write(data)
        return self

    @property
    def size(self) -> int:
        """How long it is, in bytes."""
        return self.path.stat().st_size

    def _at(self) -> str:
        self.lines += 1
        return iso(self.at_ms + self.lines * 1000)

    def _message(self, role: str, content: object, changes: Mapping[str, object]) -> Transcript:
        stamp = self._at()
        if self.agent == "codex":
            kind = "input_text" if role == "user" else "output_text"
            said = {"type": "message", "role": role, "content": [{"type": kind, "text": content}]}
            return self.line({"timestamp": stamp, "type": "response_item", "payload": said})
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        return self.line(
            {
                "type": role,
                "uuid": f"{zlib.crc32(self.session.encode()):08x}-0000-4000-8000-{self.lines:012x}",
                "sessionId": self.session,
                "cwd": str(self.cwd),
                "isSidechain": False,
                "timestamp": stamp,
                "message": {"role": role, "content": blocks},
                **changes,
            }
        )


def _databases_of(home: Home) -> tuple[Path, Path]:
    return home.ledger, home.session_history


@cache
def _new_databases() -> tuple[bytes, ...]:
    """The ledger and the session history of a home in which nothing happened yet."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        place = open_workplace(home, Config(), FakeClock(), {}, provider=ScriptedModel())
        place.close()
        return tuple(path.read_bytes() for path in _databases_of(home))


class World:
    """One home and everything around it. ``model`` answers; ``clock`` moves only when told."""

    def __init__(
        self,
        folder: Path,
        clock: FakeClock,
        script: Iterable[str | Exception | Callable[[Request], str]] = (),
        *,
        config: Config | None = None,
        environ: Mapping[str, str] | None = None,
        provider: Provider | None = None,
    ) -> None:
        self.folder = folder
        self.clock = clock
        self.home = Home(folder / "home")
        self.project = folder / "project"
        self.project.mkdir(exist_ok=True)
        self.model = ScriptedModel(script)
        self.config = config or Config()
        self.environ = {"HOME": str(folder / "person"), **(environ or {})}
        self.provider = provider or self.model
        if not self.home.root.exists():
            self._put_databases()
        self.restart()

    def _put_databases(self) -> None:
        """Both databases as they are made in a new home: making them is most of making a world."""
        self.home.prepare()
        for path, data in zip(_databases_of(self.home), _new_databases(), strict=True):
            path.touch(FILE_MODE)
            path.write_bytes(data)

    def restart(
        self, *, config: Config | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        """A new process of the same home; what the old one held in memory is gone."""
        self.config = config or self.config
        self.environ = {**self.environ, **(environ or {})}
        self.place: Workplace = open_workplace(
            self.home, self.config, self.clock, self.environ, provider=self.provider
        )
        self.ledger = self.place.ledger
        self.keeper = LeaseKeeper(self.ledger, self.clock, 30)
        self.worker = Worker(lambda: self.place, self.keeper)

    # -- what agents do --------------------------------------------------------------------------

    def transcript(
        self, session: str = "s1", *, agent: str = "claude-code", cwd: Path | None = None
    ) -> Transcript:
        """An empty transcript where the agent keeps its own."""
        cwd = cwd or self.project
        if agent == "codex":
            folder = self.folder / "person" / ".codex" / "sessions" / "2026" / "01" / "05"
            path = folder / f"rollout-2026-01-05T09-00-00-{session}.jsonl"
        else:
            folder = self.folder / "person" / ".claude" / "projects" / "-project"
            path = folder / f"{session}.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        path.touch()
        made = Transcript(agent, session, path, cwd, self.clock.now_ms() - 3_600_000)
        if agent == "codex":
            meta = {"id": session, "cwd": str(cwd), "source": "cli"}
            made.line({"timestamp": iso(made.at_ms), "type": "session_meta", "payload": meta})
        return made

    def enqueue(
        self,
        transcript: Transcript,
        kind: str = "finalize",
        *,
        cutoff: int | None = None,
        trigger: str = "hook",
        reason: str = "end",
        cwd: str = "",
    ) -> Enqueued:
        """Ask for a job up to ``cutoff``, the transcript's present end when None."""
        return self.ledger.enqueue(
            kind,
            transcript.agent,
            transcript.session,
            cutoff=transcript.size if cutoff is None else cutoff,
            transcript=str(transcript.path),
            cwd=cwd,
            trigger=trigger,
            reason=reason,
        )

    def finalize(self, transcript: Transcript, **asked: object) -> Job:
        """Ask for a finalize, work until nothing is ready, and look at its row."""
        job = self.enqueue(transcript, **asked).job  # type: ignore[arg-type]
        assert job is not None
        self.work()
        return self.job(job)

    def throttle(self, transcript: Transcript) -> None:
        """Work an extract that the gates send away: all is ingested, nothing distilled."""
        self.enqueue(transcript, "extract", reason="stop")
        self.work()

    # -- what memoryd does -----------------------------------------------------------------------

    def work(self) -> int:
        """One worker works until nothing is ready; how many attempts."""
        return self.worker.work_ready()

    def work_to_rest(self, limit: int = 200) -> list[int]:
        """Work, move the clock to the next due time, and again until nothing waits.

        The wall times (ms) at which something was due come back.
        """
        times: list[int] = []
        self.work()
        while (due := self.ledger.next_due_ms()) is not None:
            assert len(times) < limit, "it never comes to rest"
            self.clock.advance(max(0, due - self.clock.now_ms()) / 1000 + 0.001)
            times.append(self.clock.now_ms())
            self.work()
        return times

    def die_at(self, point: str, monkeypatch: pytest.MonkeyPatch, *, time: int = 1) -> None:
        """Work until ``point`` is reached the ``time``-th time, die there, and start anew."""
        left = time

        def hook(reached: str) -> None:
            nonlocal left
            left -= reached == point
            if not left:
                raise Stopped(point)

        with monkeypatch.context() as patched:
            patched.setattr(seams, "hook", hook)
            with pytest.raises(Stopped):
                self.work()
        self.place.close()
        self.restart()
        self.ledger.rescue(everything=True)

    # -- what is there ---------------------------------------------------------------------------

    def job(self, job: Job) -> Job:
        """The job's row as it is now."""
        return self.ledger.records.job(job.id)

    def cursor(self, transcript: Transcript) -> int:
        """The last ``seq`` of the session that was distilled."""
        return self.ledger.cursor(transcript.agent, transcript.session)

    def candidates(self, job: Job) -> list[KeptCandidate]:
        """What the job's slices gave."""
        return self.ledger.records.candidates(job.id)

    def reasons(self, job: Job) -> list[str]:
        """Why each candidate of the job became what it is, in order."""
        return [kept.reason for kept in self.candidates(job)]

    def store(self, cwd: Path | None = None) -> Store:
        """The store of a project."""
        key = Resolver(self.home).resolve(str(cwd or self.project)).key
        return Store.for_project(self.home, key)

    def bodies(self, cwd: Path | None = None) -> list[str]:
        """The bodies of the current notes of a project, sorted."""
        return sorted(note.body for note in self.store(cwd).notes() if not note.archived)

    def commits(self, cwd: Path | None = None) -> list[str]:
        """The subjects of the commits that slices made, newest first."""
        store = self.store(cwd)
        if not store.git_dir.exists():
            return []
        return [made.subject for made in Baseline(store).log() if made.values("Memoryd-Slice")]

    def prompts(self) -> str:
        """Every word that was sent to the model."""
        return "\n".join(asked.system + asked.prompt for asked in self.model.requests)

    def bytes_of_home(self) -> Iterator[tuple[Path, bytes]]:
        """Every file of the home, with what git keeps compressed laid open."""
        for path in sorted(self.home.root.rglob("*")):
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                yield path, data
                if "objects" in path.parts and data[:1] == b"\x78":
                    yield path, zlib.decompress(data)


def fact(statement: str, span: str | None = None, **changes: object) -> dict[str, object]:
    """One fact of an answer; it stands on ``span``, the statement itself when None."""
    return {
        "statement": statement,
        "category": "preference",
        "evidence": [{"message": None, "span": span or statement}],
        "explicitness": "explicit",
        "sensitivity": "none",
        "confidence": 0.9,
        "note": None,
        "relation": {"kind": "new", "name": None},
        **changes,
    }


def answer(*facts: dict[str, object]) -> str:
    """A model's answer that holds ``facts``."""
    return json.dumps({"facts": list(facts)})
