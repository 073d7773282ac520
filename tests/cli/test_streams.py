"""Standard streams that are closed, or that cannot be written: no file takes their place."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.cli import hook, main, streams


def in_a_process(do: Callable[[], int], *closed: int) -> int:
    """The exit code of ``do`` in a process without the streams ``closed``."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            for number in closed:
                os.close(number)
                setattr(sys, ("stdin", "stdout", "stderr")[number], None)
            code = do()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("closed", [(0, 1, 2), (1,), (2,), (0, 2)])
def test_a_closed_stream_is_nothing_and_no_file_gets_its_number(
    tmp_path: Path, closed: tuple[int, ...]
) -> None:
    """A database on number 2 would get the log lines written into it."""

    def opened_by(opens: Callable[[], object]) -> Callable[[], int]:
        def do() -> int:
            opens()
            # An exit code is small, and there may be many descriptors.
            return min(os.open(tmp_path / "database", os.O_RDWR | os.O_CREAT), 98)

        return do

    def and_said() -> None:
        streams.open_closed()
        for stream in (sys.stdout, sys.stderr):
            stream.write("said\n")
            stream.flush()

    assert 2 < in_a_process(opened_by(and_said), *closed) < 99
    assert 2 < in_a_process(opened_by(hook._open_closed), *closed) < 99
    assert in_a_process(opened_by(int), *closed) == closed[0]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")  # noqa: PTH110
@pytest.mark.parametrize("number", [1, 2])
def test_what_cannot_be_written_is_exit_code_1(tmp_path: Path, number: int) -> None:
    """With a line that says so where that can be said, and no word of Python's own."""
    told = tmp_path / "told"

    def do() -> int:
        os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT), 2)
        os.dup2(os.open("/dev/full", os.O_WRONLY), number)
        sys.stdout, sys.stderr = (os.fdopen(each, "w", closefd=False) for each in (1, 2))
        main.cli.main = lambda **_: (sys.stdout, sys.stderr)[number - 1].write("x") and 0  # type: ignore[method-assign]
        try:
            main.main()
        except SystemExit as left:
            sys.stdout.flush()
            return int(str(left.code))

    assert in_a_process(do) == 1
    lines = told.read_text().splitlines()
    assert (
        lines == ["memoryd: the output could not be written: No space left on device"][: 2 - number]
    )


def test_a_secret_typed_as_a_command_is_not_echoed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor in what says how an option is used, and nothing there drives the terminal."""
    secret = "ghp_" + "R4nd0mW0rdsG0H3re" + "A1b2C3d4E5f6G7h8I9j"
    for words in ([secret], ["list", "--status", f"\x1b{secret}"]):
        monkeypatch.setattr(sys, "argv", ["memoryd", *words])
        with pytest.raises(SystemExit) as left:
            main.main()

        said = capsys.readouterr().err
        assert left.value.code == 2 and "Error:" in said
        assert secret[:20] not in said and "\x1b" not in said
