"""Whole transcripts: one of each agent, and ones too large to hold in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from said import Reader, claude

from memoryd.sessions.history import History

TRANSCRIPTS = Path(__file__).parents[1] / "fixtures" / "transcripts"

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")

#: Ingests its transcript and prints messages, skipped lines and peak resident kilobytes.
INGEST = """
import sys
from pathlib import Path
from memoryd.memory.testing import FakeClock
from memoryd.sessions.agents import adapter_for
from memoryd.sessions.history import History
from memoryd.sessions.ingest import ingest
path = Path(sys.argv[1])
with History(path.with_name("large.sqlite"), FakeClock()) as history:
    found = ingest(history, adapter_for("claude-code"), "claude-code", "s1", path, None,
                   resolver=str, exclude=lambda cwd: False)
# getrusage would carry over what the test runner held when it started this process.
peak = [line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line]
kilobytes = int(peak[0].split()[1])
print(found.new_messages, sum(found.skipped.values()), kilobytes)
"""


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("claude-code", ["run the tests with uv", "All three pass."]),
        ("codex", ["use tabs in Makefiles", "Done."]),
    ],
)
def test_a_transcript_gives_what_the_two_said(
    history: History, tmp_path: Path, agent: str, words: list[str]
) -> None:
    """Everything else the agent wrote down is skipped, and nothing is bad."""
    reader = Reader(history, tmp_path, agent)
    reader.write((TRANSCRIPTS / f"{agent}.jsonl").read_bytes())

    found = reader.read()

    assert reader.texts() == words
    assert (found.bad_lines, sum(found.skipped.values())) == (0, 8)


def _peak_kilobytes(path: Path) -> tuple[int, int, int]:
    command = [sys.executable, "-c", INGEST, str(path)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    messages, skipped, kilobytes = map(int, answer.split())
    return messages, skipped, kilobytes


@pytest.mark.slow
@ON_LINUX
def test_memory_stays_flat_over_tool_output_of_any_size(tmp_path: Path) -> None:
    """200 MiB of tool output take no more memory than 2 MiB."""
    block = [{"tool_use_id": "t", "type": "tool_result", "content": "x" * 16_000}]
    output = claude("user", block)
    path = tmp_path / "s1.jsonl"
    path.write_bytes(output * 128)
    small = _peak_kilobytes(path)[2]
    with path.open("wb") as file:
        for _ in range(100):
            file.write(output * 128)
    path.with_name("large.sqlite").unlink()

    messages, skipped, large = _peak_kilobytes(path)

    assert (messages, skipped) == (0, 12_800)
    assert large < small + 8 * 1024


@pytest.mark.slow
@ON_LINUX
def test_a_line_of_200_mib_is_never_held(tmp_path: Path) -> None:
    """What follows it is read."""
    path = tmp_path / "s1.jsonl"
    with path.open("wb") as file:
        file.truncate(200 * 1024 * 1024)
        file.seek(0, 2)
        file.write(b"\n" + claude("user", "after"))

    messages, skipped, kilobytes = _peak_kilobytes(path)

    assert (messages, skipped) == (1, 1)
    assert kilobytes < 120 * 1024
