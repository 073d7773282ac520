"""The hook: one durable envelope, nothing printed, status 0, whatever stands in the way."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from memoryd.cli import hook
from memoryd.jobs import envelope
from memoryd.jobs.envelope import Envelope

HOOK = Path(sys.executable).with_name("memoryd-hook")
SESSION = "01234567-89ab-7def-8123-456789abcdef"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A home that does not exist yet, below a folder that does not either."""
    return tmp_path / "not" / "yet" / "home"


def fire(
    root: Path,
    said: object = b"",
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    before: Callable[[], object] | None = None,
) -> None:
    """Run the installed hook as an agent does; it must exit 0 and print nothing."""
    done = subprocess.run(
        [str(HOOK), *(arguments or ("claude-code", "session-end"))],
        input=said if isinstance(said, bytes) else json.dumps(said).encode(),
        env={**os.environ, "MEMORYD_HOME": str(root), **(environ or {})},
        cwd=cwd,
        preexec_fn=before,
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def make_input(**overrides: Any) -> dict[str, Any]:
    """What Claude Code says at the end of a session, with ``overrides``."""
    return {
        "session_id": SESSION,
        "transcript_path": None,
        "cwd": "/work/code",
        "hook_event_name": "SessionEnd",
        "reason": "clear",
        **overrides,
    }


def envelopes(root: Path) -> list[Envelope]:
    """Every envelope in the inbox, read strictly; no other file may be there."""
    inbox = root / "inbox"
    return [envelope.read(path) for path in sorted(inbox.iterdir())] if inbox.is_dir() else []


def only(root: Path) -> Envelope:
    """The one envelope there is."""
    (found,) = envelopes(root)
    return found


def traces(root: Path) -> list[str]:
    """What the hook wrote about its failures, without the time."""
    log = root / "logs" / "hook-errors.log"
    return [line.split(" ", 1)[1] for line in log.read_text().splitlines()] if log.exists() else []


def test_a_finished_session_becomes_one_envelope(root: Path, tmp_path: Path) -> None:
    """Agent, event, session, transcript, cwd, reason and the end of the last whole line."""
    transcript = tmp_path / "t.jsonl"
    transcript.write_bytes(b'{"a":1}\n{"b":2}\n{"half')

    fire(root, make_input(transcript_path=str(transcript)))

    found = only(root)
    assert (found.agent, found.event, found.session) == ("claude-code", "session-end", SESSION)
    assert (found.transcript, found.cwd) == (str(transcript), "/work/code")
    assert (found.reason, found.cutoff, found.switches) == ("clear", 16, ())
    assert traces(root) == []


def test_folders_and_files_are_private_whatever_the_umask(root: Path) -> None:
    """A home made by the hook is 0700 throughout and the envelope 0600."""
    fire(root, make_input(), before=lambda: os.umask(0))

    (path,) = (root / "inbox").iterdir()
    modes = [stat.S_IMODE(item.stat().st_mode) for item in (root, root / "inbox", path)]
    assert modes == [0o700, 0o700, 0o600]


def test_the_default_home_is_in_the_persons_folder(root: Path) -> None:
    """Without MEMORYD_HOME the envelope is in ``~/.memoryd``."""
    fire(root, make_input(), environ={"MEMORYD_HOME": ""})

    assert only(Path(os.environ["HOME"]) / ".memoryd").session == SESSION


@pytest.mark.parametrize("agent", hook.AGENTS)
@pytest.mark.parametrize("event", ["session-end", "stop", "pre-compact"])
def test_every_agent_and_event_is_kept(root: Path, agent: str, event: str) -> None:
    """The envelope says what the hook was called with."""
    fire(root, make_input(), agent, event)

    assert (only(root).agent, only(root).event) == (agent, event)


def test_cursors_words_for_session_and_directory_are_understood(root: Path) -> None:
    """A conversation, and the first root of its workspace."""
    said = {
        "conversation_id": SESSION,
        "hook_event_name": "stop",
        "workspace_roots": ["/work/code", "/work/other"],
        "status": "completed",
        "user_email": "nobody@localhost",
    }

    fire(root, said, "cursor", "stop")

    assert (only(root).session, only(root).cwd) == (SESSION, "/work/code")


@pytest.mark.parametrize("roots", [[], ["a\0b"], [7], "x", {"0": "/a"}, None], ids=repr)
def test_roots_that_are_none_leave_the_directory_open(root: Path, roots: object) -> None:
    """The session counts."""
    fire(root, make_input(cwd=None, workspace_roots=roots), "cursor", "stop")

    assert only(root).cwd is None


def test_a_background_agents_session_leaves_only_a_trace(root: Path) -> None:
    """Nobody talked to it."""
    fire(root, make_input(is_background_agent=True), "cursor", "session-end")

    assert envelopes(root) == []
    assert traces(root) == ["cursor session-end event.background"]


def test_nothing_a_person_said_reaches_the_disk(root: Path) -> None:
    """Keys that quote the conversation are dropped, and a reason that is a sentence with them."""
    words = "the colour of the bicycle"

    fire(
        root,
        make_input(last_assistant_message=words, prompt=words, reason=words, trigger=words),
    )

    kept = b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
    assert only(root).reason is None
    assert b"bicycle" not in kept


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("prompt_input_exit", "prompt_input_exit"),
        ("user-exit", "user-exit"),
        ("ghp_" + "Zx9Qw7Er" * 5, None),
        ("abc123", None),
        ("Clear", None),
        ("_x", None),
        ("x" * 41, None),
    ],
)
def test_a_reason_is_a_word_of_lower_case_letters(root: Path, said: str, kept: str | None) -> None:
    """What has digits or capitals, or is long, could be a token: it reaches no envelope."""
    fire(root, make_input(reason=said))

    assert only(root).reason == kept


def test_the_trigger_stands_in_for_the_reason(root: Path) -> None:
    """A compaction has a trigger where the end of a session has a reason."""
    fire(root, make_input(reason=None, trigger="auto"), "codex", "pre-compact")

    assert only(root).reason == "auto"


def test_kill_switches_that_are_on_are_named(root: Path) -> None:
    """Only names of switches set to something true are kept."""
    environ = {
        "MEMORYD_DISABLE_EXTRACTION": "1",
        "MEMORYD_DISABLE_RECALL": " TRUE ",
        "MEMORYD_DISABLE_JUDGE": "0",
        "MEMORYD_DISABLE_CONSOLIDATION": "",
    }

    fire(root, make_input(), environ=environ)

    assert only(root).switches == ("MEMORYD_DISABLE_EXTRACTION", "MEMORYD_DISABLE_RECALL")


def test_paths_are_made_absolute(root: Path, tmp_path: Path) -> None:
    """``~`` is the person's folder; a relative transcript is meant from the agent's cwd."""
    fire(root, make_input(transcript_path="~/t.jsonl", session_id="one"))
    fire(root, make_input(transcript_path="logs/../t.jsonl", session_id="two"))
    fire(root, make_input(transcript_path="t.jsonl", cwd=None, session_id="three"), cwd=tmp_path)

    found = {item.session: item.transcript for item in envelopes(root)}
    assert found == {
        "one": f"{os.environ['HOME']}/t.jsonl",
        "two": "/work/code/t.jsonl",
        "three": f"{tmp_path}/t.jsonl",
    }


@pytest.mark.parametrize(
    "name", [f"{SESSION}.jsonl", f"rollout-2026-01-05T09-00-00-{SESSION}.jsonl", f"{SESSION}"]
)
def test_a_missing_session_id_is_read_off_the_transcripts_name(root: Path, name: str) -> None:
    """Both agents name transcripts by the session's id."""
    fire(root, make_input(session_id=None, transcript_path=f"/t/{name}"))

    assert only(root).session == SESSION


@pytest.mark.parametrize(
    ("overrides", "code"),
    [
        ({"session_id": "../../etc/passwd"}, "session.refused"),
        ({"session_id": "a/b"}, "session.refused"),
        ({"session_id": "a" * 10_240}, "session.refused"),
        ({"session_id": "a\nb"}, "session.refused"),
        ({"session_id": 7}, "session.refused"),
        ({"session_id": None}, "session.missing"),
        ({"session_id": "", "transcript_path": "/t/notes.jsonl"}, "session.missing"),
        ({"session_id": None, "transcript_path": "/t/agent-a1b2c3.jsonl"}, "session.missing"),
        ({"hook_event_name": "SubagentStop"}, "event.subagent"),
    ],
    ids=repr,
)
def test_an_event_without_a_usable_session_leaves_only_a_trace(
    root: Path, overrides: dict[str, Any], code: str
) -> None:
    """The trace names the fault and quotes nothing."""
    fire(root, make_input(**overrides))

    assert envelopes(root) == []
    assert traces(root) == [f"claude-code session-end {code}"]


@pytest.mark.parametrize(
    "overrides",
    [
        {"cwd": ["/a"]},
        {"cwd": "/a\0b"},
        {"cwd": "/" + "a" * 5000},
        {"cwd": "/\ud800"},
        {"transcript_path": {"a": 1}},
        {"transcript_path": 1e999},
        {"reason": 5},
        {"reason": "x" * 200},
        {"hook_event_name": None},
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_bad_value_beside_a_good_session_costs_only_itself(
    root: Path, overrides: dict[str, Any]
) -> None:
    """The session is kept; what could not be used is null."""
    fire(root, make_input(**overrides))

    found = only(root)
    assert found.session == SESSION
    assert [
        getattr(found, {"transcript_path": "transcript"}.get(key, key), None) for key in overrides
    ] == [None]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"", "input.empty"),
        (b" \n\t ", "input.empty"),
        (b"not json", "input.not-an-object"),
        (b'["session_id"]', "input.not-an-object"),
        (b"null", "input.not-an-object"),
        (b'{"session_id": "a"', "input.not-an-object"),
        (b'{"session_id": "a"} tail', "input.not-an-object"),
        (b"[" * 200_000, "input.not-an-object"),
        (b'{"a":' * 100_000 + b"}", "input.not-an-object"),
        (b"\xff\xfe\x00", "input.not-an-object"),
        (b"x" * (hook.INPUT_BYTES + hook.BLOCK_BYTES), "input.too-large"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_input_that_is_no_object_leaves_only_a_trace(root: Path, said: bytes, code: str) -> None:
    """Empty, cut short, nested without end, not text, or megabytes of it."""
    fire(root, said)

    assert envelopes(root) == []
    assert traces(root) == [f"claude-code session-end {code}"]


def test_a_long_last_message_does_not_cost_the_session(root: Path) -> None:
    """A megabyte of braces, quotes and foreign text is read past."""
    message = 'fn main() { "}" }\n' * 40_000 + "ü\u202e\U0001f600" * 50_000

    fire(root, make_input(last_assistant_message=message), "codex", "stop")

    assert only(root).session == SESSION


def test_a_byte_order_mark_and_bad_bytes_in_text_are_read_past(root: Path) -> None:
    """One broken character in a message is not worth a session."""
    said = json.dumps(make_input(last_assistant_message="HERE")).encode()

    fire(root, b"\xef\xbb\xbf" + said.replace(b"HERE", b"\xff\x80"))

    assert only(root).session == SESSION


@pytest.mark.parametrize(
    "arguments",
    [
        ("claude-code",),
        ("claude-code", "session-end", "more"),
        ("unknown", "session-end"),
        ("claude-code", "prompts"),
        ("--help", "x"),
        ("claude-code\nforged line", "session-end"),
    ],
    ids=repr,
)
def test_wrong_arguments_leave_one_line_of_trace(root: Path, arguments: tuple[str, ...]) -> None:
    """A hook set up wrongly can be found, and cannot forge lines."""
    fire(root, make_input(), *arguments)

    assert envelopes(root) == []
    assert traces(root) == ["- - arguments"]


def start_with_open_stdin(root: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """The hook with a standard input that stays open."""
    return subprocess.Popen(
        arguments or [str(HOOK), "codex", "stop"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "MEMORYD_HOME": str(root)},
    )


def test_an_agent_that_never_speaks_is_left_at_the_deadline(root: Path) -> None:
    """Standard input stays open and silent: the hook goes by itself, and says so."""
    with start_with_open_stdin(root) as process:
        assert process.wait(timeout=60) == 0
        assert process.stdout is not None and process.stdout.read() == b""

    assert traces(root) == ["codex stop deadline"]


def test_a_whole_object_is_enough_when_the_pipe_stays_open(root: Path) -> None:
    """Agents that forget to close the pipe lose nothing."""
    with start_with_open_stdin(root) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(make_input()).encode())
        process.stdin.flush()
        assert process.wait(timeout=60) == 0

    assert only(root).session == SESSION
    assert traces(root) == []


@pytest.mark.parametrize("still", ["os.fsync", "os.write", "hook.last_line_end"])
def test_a_disk_that_stands_still_keeps_the_agent_and_the_event(root: Path, still: str) -> None:
    """A sync, a first write or a look at the transcript that never ends: status 0 at the deadline,
    the envelope is whole in the inbox with no other file beside it, and a trace says so."""
    script = (
        "import os, sys; from memoryd.cli import hook\n"
        f"first = [{still}]\n"
        "def stand_still(*given):\n"
        f"    {still} = first[0]\n"
        "    os.read(os.pipe()[0], 1)\n"
        f"{still} = stand_still\n"
        "sys.argv[1:] = ['codex', 'stop']; hook.main()"
    )
    with start_with_open_stdin(root, sys.executable, "-c", script) as process:
        assert process.stdin is not None
        said = make_input(transcript_path=str(root.parent / "s.jsonl"))
        process.stdin.write(json.dumps(said).encode())
        process.stdin.close()
        assert process.wait(timeout=60) == 0
        assert process.stdout is not None and process.stdout.read() == b""

    assert only(root).session == SESSION
    assert traces(root) == ["codex stop deadline.unsynced"]


def test_a_busy_processor_costs_nothing(root: Path) -> None:
    """Whoever is not let to run is not standing still: the event is synced, nobody is told."""
    script = (
        "import os, select, sys, time; from memoryd.cli import hook\n"
        "born, hook.DEADLINE_SECONDS = time.monotonic(), 0.01\n"
        "hook._queued = lambda: time.monotonic() - born\n"
        "sync = os.fsync\n"
        "def late(descriptor):\n"
        "    select.select([], [], [], 0.1)\n"
        "    sync(descriptor)\n"
        "os.fsync = late\n"
        "sys.argv[1:] = ['codex', 'stop']; hook.main()"
    )
    with start_with_open_stdin(root, sys.executable, "-c", script) as process:
        process.communicate(json.dumps(make_input()).encode(), timeout=60)

    assert only(root).session == SESSION
    assert traces(root) == []


def test_closed_standard_streams_do_not_matter(root: Path) -> None:
    """Without any of the three streams it still exits 0 and says what was wrong."""
    script = 'exec 0<&- 1>&- 2>&-; "$0" claude-code stop'
    done = subprocess.run(
        ["sh", "-c", script, str(HOOK)], env={**os.environ, "MEMORYD_HOME": str(root)}, timeout=60
    )

    assert done.returncode == 0
    assert [line.rsplit(".", 1)[0] for line in traces(root)] == ["claude-code stop input"]


def test_an_impatient_terminal_does_not_cost_the_envelope(root: Path) -> None:
    """Ctrl-C and a closed terminal while the hook works change nothing."""
    script = (
        "import os, signal, sys; from memoryd.cli import hook\n"
        "sync = os.fsync\n"
        "def shaken(descriptor):\n"
        "    [os.kill(os.getpid(), n) for n in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)]\n"
        "    sync(descriptor)\n"
        "os.fsync = shaken\n"
        "sys.argv[1:] = ['codex', 'stop']; hook.main()"
    )
    with start_with_open_stdin(root, sys.executable, "-c", script) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(make_input()).encode())
        process.stdin.close()
        assert process.wait(timeout=60) == 0

    assert only(root).session == SESSION


def test_a_file_where_the_home_should_be_fails_in_silence(tmp_path: Path) -> None:
    """There is nowhere to write, not even the trace."""
    (tmp_path / "home").write_text("mine")

    fire(tmp_path / "home", make_input())

    assert (tmp_path / "home").read_text() == "mine"


def test_a_file_where_the_inbox_should_be_leaves_a_trace(root: Path) -> None:
    """What could not be written is named by its number."""
    root.mkdir(parents=True)
    (root / "inbox").write_text("mine")

    fire(root, make_input())

    assert traces(root) == ["claude-code session-end os.20"]


def test_a_full_disk_leaves_no_half_envelope(root: Path) -> None:
    """Not one byte can be written: status 0 and nothing in the inbox."""
    fire(root, make_input(), before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))

    assert list((root / "inbox").iterdir()) == []


def test_the_trace_stays_small(root: Path) -> None:
    """A full log moves aside once; two files are all there ever are."""
    log = root / "logs" / "hook-errors.log"
    log.parent.mkdir(parents=True)
    log.write_text("x" * hook.LOG_BYTES)

    fire(root, b"")

    assert traces(root) == ["claude-code session-end input.empty"]
    assert sorted(path.name for path in log.parent.iterdir()) == [log.name, f"{log.name}.1"]


def test_a_trace_never_follows_a_link(root: Path, tmp_path: Path) -> None:
    """A link in the log's place is left alone, and so is what it points at."""
    (root / "logs").mkdir(parents=True)
    (root / "logs" / "hook-errors.log").symlink_to(tmp_path / "elsewhere")

    fire(root, b"")

    assert not (tmp_path / "elsewhere").exists()


def test_many_hooks_at_once_each_leave_their_own(root: Path) -> None:
    """Names never meet, also while the folders are being made."""
    running = [start_with_open_stdin(root) for _ in range(6)]
    for number, process in enumerate(running):
        process.communicate(json.dumps(make_input(session_id=f"s{number}")).encode(), timeout=60)

    assert sorted(item.session for item in envelopes(root)) == [f"s{n}" for n in range(6)]


# ---------------------------------------------------------------- the transcript's tail


@pytest.mark.parametrize(
    ("content", "end"),
    [
        (b"", 0),
        (b"no newline", 0),
        (b"\n", 1),
        (b"a\nb\n", 4),
        (b"a\nhalf", 2),
        (b"a\n" + b"x" * (hook.BLOCK_BYTES - 1), 2),
        (b"a\n" + b"x" * hook.BLOCK_BYTES, 2),
        (b"a\n" + b"x" * (3 * hook.BLOCK_BYTES), 2),
        (b"x" * (3 * hook.BLOCK_BYTES), 0),
    ],
    ids=lambda value: repr(value)[:16],
)
def test_the_cutoff_is_the_end_of_the_last_whole_line(
    tmp_path: Path, content: bytes, end: int
) -> None:
    """Wherever the last newline stands among the blocks that are read."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)

    assert hook.last_line_end(str(path)) == end


def test_only_the_tail_of_a_transcript_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the transcript, one block is enough for a whole last line."""
    path = tmp_path / "t.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, os.SEEK_END)
        file.write(b"\nhalf")
    read: list[int] = []
    pread = os.pread

    def counting(descriptor: int, length: int, offset: int) -> bytes:
        read.append(length)
        return pread(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", counting)

    assert hook.last_line_end(str(path)) == (1 << 40) + 1
    assert sum(read) <= hook.BLOCK_BYTES


def test_a_last_line_without_end_leaves_the_cutoff_open(tmp_path: Path) -> None:
    """After 8 MiB without a newline whoever makes the job looks instead."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"a\n")
    os.truncate(path, 2 + hook.TAIL_BYTES + hook.BLOCK_BYTES)

    assert hook.last_line_end(str(path)) is None


def test_the_hook_knows_every_agent_that_can_be_read() -> None:
    """It imports nothing of ours, so it has the names written down."""
    from memoryd.sessions.agents import known

    assert known() == hook.AGENTS


def test_what_is_no_plain_transcript_has_no_cutoff(tmp_path: Path) -> None:
    """Missing, a folder, a pipe nobody writes to, compressed, or a database."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "t.jsonl.zst").write_bytes(b"a\n")
    (tmp_path / "t.db").write_bytes(b"a\n")

    for name in ("missing", ".", "pipe", "t.jsonl.zst", "t.db"):
        assert hook.last_line_end(str(tmp_path / name)) is None


def test_json_is_read_the_same_without_the_c_scanner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where ``_json`` is missing the public reader and writer take over."""
    monkeypatch.setitem(sys.modules, "_json", None)

    assert hook.parse(b' {"a": {"b": "c"}} ') == {"a": {"b": "c"}}
    assert json.loads(hook._dump({"a": ['x"\n', 1, None]})) == {"a": ['x"\n', 1, None]}
