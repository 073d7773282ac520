"""A program as provider: real processes, killed whole, bounded, never told twice."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from memoryd.memory.config import ProviderSettings
from memoryd.memory.errors import BadAnswer, ProviderPermanent, ProviderUnavailable
from memoryd.memory.providers.base import Reply, Request
from memoryd.memory.providers.command import OUTPUT_BYTES
from memoryd.memory.providers.registry import make


def _ask(
    *command: str,
    seconds: float = 60,
    prompt: str = "the prompt",
    place: Path | None = None,
    tokens: int = 100,
) -> Reply:
    settings = ProviderSettings(name="command", command=command)
    if place is not None:
        return make(settings, dict(os.environ), place).complete(_request(prompt, seconds, tokens))
    with tempfile.TemporaryDirectory() as made:
        provider = make(settings, dict(os.environ), Path(made))
        return provider.complete(_request(prompt, seconds, tokens))


def _request(prompt: str, seconds: float, tokens: int) -> Request:
    return Request("the system", prompt, (), (), tokens, seconds)


def _python(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # Nobody may have reaped it yet in a container: a zombie is as good as gone.
    return f"{pid} (" in _stat(pid) and ") Z" in _stat(pid)


def _stat(pid: int) -> str:
    path = Path(f"/proc/{pid}/stat")
    return path.read_text() if path.exists() else f"{pid} () Z"


def _wait_gone(pid: int) -> bool:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if _gone(pid):
            return True
    return False


def test_the_prompt_is_read_from_stdin_and_the_answer_from_stdout() -> None:
    """System and prompt go in together; what comes out is the answer; stderr is not."""
    reply = _ask(*_python("import sys; sys.stderr.write('noise'); print(sys.stdin.read().upper())"))

    assert reply.text.split() == ["THE", "SYSTEM", "THE", "PROMPT"]
    assert reply.input_tokens > 0


def test_a_large_prompt_and_a_large_answer_pass_each_other() -> None:
    """Both pipes are served at once, so neither side waits for the other for ever."""
    code = "import sys\nfor line in sys.stdin: print(line, end='')\n"

    reply = _ask(*_python(code), prompt="line\n" * 100_000, tokens=100_000)

    assert reply.text.count("line") == 100_000


def test_a_program_that_nobody_waits_for_is_killed_at_once(tmp_path: Path) -> None:
    """Also what it started elsewhere, and where that was said before it began."""
    said = tmp_path / "pid"
    code = f"setsid sh -c 'echo $$ > {said}; exec sleep 300' & exec sleep 300"
    request = _request("the prompt", 300, 100)
    request.off.call()
    settings = ProviderSettings(name="command", command=("sh", "-c", code))

    with pytest.raises(ProviderUnavailable, match="-9") as away:
        make(settings, dict(os.environ), tmp_path / "calls").complete(request)

    assert not away.value.free
    assert not said.exists() or _wait_gone(int(said.read_text()))


def test_the_program_is_told_not_to_report_to_us() -> None:
    """Its own hooks must not feed its session back."""
    code = "import os; print(os.environ['MEMORYD_DISABLE'], os.environ['MEMORYD_OWN_CALL'])"

    assert _ask(*_python(code)).text.strip() == "1 1"


def test_the_program_runs_in_a_folder_made_for_it(tmp_path: Path) -> None:
    """Private and empty; and a repository around the home is not its project."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    place = tmp_path / "run" / "calls"
    code = "pwd; ls -A; git rev-parse --show-toplevel 2>/dev/null || echo none"

    reply = _ask("sh", "-c", code, place=place)

    assert reply.text.split() == [str(place), "none"]
    assert place.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_is_a_provider_that_is_away(tmp_path: Path) -> None:
    """A full disk passes."""
    (tmp_path / "run").write_text("in the way")

    with pytest.raises(ProviderUnavailable, match="cannot be made") as away:
        _ask("true", place=tmp_path / "run" / "calls")

    assert away.value.free


def test_a_program_that_ignores_its_prompt_may_answer() -> None:
    """A closed stdin is no fault."""
    reply = _ask(*_python("import os; os.close(0); print('{}')"), prompt="x" * 500_000)

    assert reply.text.strip() == "{}"


def test_a_failure_is_a_provider_that_is_away_with_its_last_words_redacted() -> None:
    """It costs the job no failure. Exit code and the end of stderr, without secrets, bounded."""
    token = "gl" + "pat-" + "a1B2c3D4e5F6g7H8i9J0"
    code = f"import sys; sys.stderr.write('z' * 100000 + ' no {token}'); sys.exit(3)"

    with pytest.raises(ProviderUnavailable, match="ended with 3") as caught:
        _ask(*_python(code))

    assert token not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("code", "free"),
    [
        ("import sys; sys.stdin.read(); sys.exit('please log in')", True),
        ("import sys; print('half an answer'); sys.exit(1)", False),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", False),
    ],
    ids=["logged out", "half an answer", "killed at work"],
)
def test_a_program_that_gives_up_without_a_word_has_spent_nothing(code: str, free: bool) -> None:
    """Logged out for a week it would else use up each day's tokens; at work it may have spent."""
    with pytest.raises(ProviderUnavailable) as caught:
        _ask(*_python(code))

    assert caught.value.free is free


@pytest.mark.parametrize("command", [(), ("/nowhere/at/all",), ("/",), ("bad\0name",)])
def test_a_program_that_cannot_be_run_is_permanent(command: tuple[str, ...]) -> None:
    """Asking again cannot help; the hint names the setting."""
    with pytest.raises(ProviderPermanent) as caught:
        _ask(*command)

    assert "provider.command" in caught.value.hint


def test_an_empty_answer_is_a_bad_one() -> None:
    """Nothing but white space is no answer."""
    with pytest.raises(BadAnswer, match="nothing"):
        _ask(*_python("print()"))


def test_an_answer_far_longer_than_asked_for_is_refused() -> None:
    """Eight characters a token are put up with: the day's budget reserved for no more."""
    assert len(_ask(*_python("print('x' * 799)"), tokens=100).text) == 800

    with pytest.raises(BadAnswer, match="801 characters"):
        _ask(*_python("print('x' * 800)"), tokens=100)


def test_endless_output_is_cut_off() -> None:
    """A program that never stops writing is stopped at four mebibytes."""
    with pytest.raises(BadAnswer, match=f"{OUTPUT_BYTES >> 20} MiB"):
        _ask(*_python("while True: print('x' * 65536)"))


def test_at_the_limit_the_whole_group_is_killed(tmp_path: Path) -> None:
    """The program and its grandchild are gone when the limit is said."""
    mark = tmp_path / "pids"
    script = f"sleep 1000 & echo $$ $! > {mark}; wait"

    with pytest.raises(ProviderUnavailable, match="within"):
        _ask("/bin/sh", "-c", script, seconds=1.5)

    assert all(_wait_gone(int(pid)) for pid in mark.read_text().split())


def test_children_left_behind_do_not_hold_the_answer(tmp_path: Path) -> None:
    """A background child that keeps our pipe open is killed when the program ends."""
    mark = tmp_path / "pid"
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        f"open({str(mark)!r}, 'w').write(str(child.pid))\n"
        "print('{}')\n"
    )
    began = time.monotonic()

    reply = _ask(*_python(code), seconds=60)

    assert reply.text.strip() == "{}"
    assert time.monotonic() - began < 40
    assert _wait_gone(int(mark.read_text()))


def test_what_the_program_writes_is_the_owners_alone() -> None:
    """It runs in the home."""
    old = os.umask(0)
    try:
        reply = _ask("/bin/sh", "-c", "umask")
    finally:
        os.umask(old)

    assert int(reply.text, 8) == 0o077
