"""Run by ``test_distil.py`` in a process of its own: distils 200 MiB and prints what it took."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from world import World, answer, fact

from memoryd.memory.testing import FakeClock

FIRST = "Always run the linter before you commit."
SECOND = "We deploy on Fridays only, never else."


def main(folder: Path) -> None:
    """Write the transcript, work it, print the outcome and the peak of resident memory."""
    world = World(folder, FakeClock(), [answer(fact(FIRST), fact(SECOND))])
    said = world.transcript().user(FIRST)
    said.tool_result("x" * (1 << 20))
    line = said.path.read_bytes().splitlines(keepends=True)[-1]
    with said.path.open("ab") as file:
        for _ in range(199):
            file.write(line)
    job = world.finalize(said.user(SECOND))
    session = world.place.history.session(said.agent, said.session)
    assert session is not None
    # getrusage would carry over what the test runner held when it started this process.
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    found = {
        "outcome": job.outcome_code,
        "skipped": session.skipped,
        "bodies": world.bodies(),
        "peak_mib": peak / 1024,
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
