"""No process is left of a call: not after it ended, nor after whoever called was killed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memoryd.memory.config import ProviderSettings
from memoryd.memory.errors import BadAnswer, ProviderError, ProviderUnavailable
from memoryd.memory.providers import leftovers
from memoryd.memory.providers.base import Reply, Request
from memoryd.memory.providers.leftovers import VARIABLE, Mark, end_call, end_calls_of_the_dead
from memoryd.memory.providers.registry import make


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """The folder programs run in; whatever a failing test leaves there is ended."""
    folder = tmp_path / "run" / "calls"
    yield folder
    for _, mark in list(leftovers._marked()):
        if mark.place == leftovers._hashed(folder):
            end_call(mark)


def ask(place: Path, script: str, seconds: float = 60) -> Reply:
    """Have a shell with ``script`` answer. It may write process numbers to ``$PIDS``."""
    settings = ProviderSettings(name="command", command=("sh", "-c", script))
    environ = dict(os.environ) | {"PIDS": str(place.parent / "pids")}
    request = Request("the system", "the prompt", (), (), 100, seconds)
    return make(settings, environ, place).complete(request)


def left_in(place: Path) -> set[int]:
    """The processes that still run of calls in ``place``, and those it was told of."""
    marked = {pid for pid, mark in leftovers._marked() if mark.place == leftovers._hashed(place)}
    told = place.parent / "pids"
    pids = map(int, told.read_text().split()) if told.exists() else ()
    return marked | {pid for pid in pids if _runs(pid)}


def _runs(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return ") Z" not in stat


_GRANDCHILD = "sleep 60 & echo $! >> $PIDS"
_OF_ITS_OWN_SESSION = "setsid sh -c 'echo $$ >> $PIDS; exec sleep 60' & "
_TWICE_REMOVED = "setsid sh -c 'setsid sleep 60 & echo $! >> $PIDS' & wait $!; "


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "seconds", "end"),
    [
        (f"{_GRANDCHILD}; echo '{{}}'", 60, "{}"),
        (f"{_OF_ITS_OWN_SESSION} echo '{{}}'", 60, "{}"),
        (f"{_TWICE_REMOVED} echo '{{}}'", 60, "{}"),
        (f"exec 0<&-; {_TWICE_REMOVED} exit 3", 60, ProviderUnavailable),
        (f"{_TWICE_REMOVED} true", 60, BadAnswer),
        (f"trap '' TERM HUP INT; {_GRANDCHILD}; {_TWICE_REMOVED} wait", 0.6, ProviderUnavailable),
        (f"{_OF_ITS_OWN_SESSION} yes >&2", 0.6, ProviderUnavailable),
        (f"{_OF_ITS_OWN_SESSION} yes", 60, BadAnswer),
        ("while :; do setsid sleep 60 & sleep 0.002; done", 0.6, ProviderUnavailable),
    ],
    ids=["child", "setsid", "twice removed", "fails", "says nothing", "ignores signals",
         "floods stderr", "floods stdout", "forks for ever"],
)  # fmt: skip
def test_nothing_is_left_of_a_program_when_its_call_is_over(
    place: Path, script: str, seconds: float, end: str | type[ProviderError]
) -> None:
    """Whatever it started, wherever that went, and however the call ended."""
    found: object
    try:
        found = ask(place, script, seconds).text.strip()
    except ProviderError as error:
        found = type(error)

    assert found == end
    assert left_in(place) == set()


def test_a_child_of_another_session_that_holds_our_pipe_does_not_hold_the_answer(
    place: Path,
) -> None:
    """It is ended with the program, long before the time limit."""
    before = os.times().elapsed

    assert ask(place, f"{_OF_ITS_OWN_SESSION} echo '{{}}'", 60).text.strip() == "{}"

    assert os.times().elapsed - before < 30


def _caller(place: Path, script: str) -> int:
    """A process that has a program answer; its number. It ends with the call."""
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            ask(place, script)
        os._exit(0)
    return pid


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
def test_what_a_killed_caller_left_is_ended_by_the_next_start(place: Path) -> None:
    """The program kills its parent, us, and goes on with a child of another session."""
    pid = _caller(place, f"{_TWICE_REMOVED} kill -9 $PPID; exec sleep 60")
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == -9
    assert len(left_in(place)) == 2

    assert end_calls_of_the_dead(place) == 2

    assert left_in(place) == set()


def test_the_programs_of_a_caller_that_lives_are_its_own(place: Path, tmp_path: Path) -> None:
    """A preview in a terminal is not disturbed by a daemon that starts; nor is another home."""
    mark = leftovers.new_mark(place)
    elsewhere = Mark(leftovers._hashed(tmp_path / "other"), 2**22 + 1, "0", 1)
    for each in (mark, elsewhere):
        with marked(each) as program:
            assert end_calls_of_the_dead(place) == 0
            assert program.poll() is None


class marked(subprocess.Popen[bytes]):
    """A program with a mark; ended with the block."""

    def __init__(self, mark: Mark) -> None:
        super().__init__(["sleep", "60"], env=dict(os.environ) | {VARIABLE: str(mark)})

    def __exit__(self, *raised: object) -> None:  # type: ignore[override]
        self.kill()
        self.wait()


def test_a_number_that_was_given_away_again_is_not_the_caller(place: Path) -> None:
    """The caller died and another process has its number by now: born later, it is not it."""
    ours = leftovers.new_mark(place)
    with marked(Mark(ours.place, ours.caller, "1", 7)) as program:
        assert end_calls_of_the_dead(place) == 1
        assert program.wait(60) == -9


def test_without_proc_the_marks_are_read_from_ps(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS, where the environment stands behind the command."""
    ours = leftovers.new_mark(place)
    dead = Mark(ours.place, 2**22 + 1, "MonNov301415002026", 7)
    with marked(dead) as program, marked(ours) as other:
        ps = tmp_path / "ps"
        ps.write_text(
            "#!/bin/sh\n"
            'case "$*" in\n'
            f"*lstart=*{os.getpid()}) echo 'Mon Nov 30 14:15:00 2026' ;;\n"
            "*command=*)\n"
            "    echo '    1 /sbin/launchd'\n"
            f"    echo '{program.pid} sleep 60 HOME=/x {VARIABLE}={dead} TERM=x'\n"
            f"    echo '{other.pid} sleep 60 {VARIABLE}={ours}' ;;\n"
            "esac\n"
        )
        ps.chmod(0o755)
        monkeypatch.setattr(leftovers, "_PROC", tmp_path / "no-proc")
        monkeypatch.setenv("PATH", str(tmp_path))
        assert leftovers.born(os.getpid()) == "MonNov301415002026"

        leftovers.end_call(dead)

        assert program.wait(60) == -9
        assert other.poll() is None
