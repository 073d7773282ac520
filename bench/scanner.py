"""How long the scanner takes over the starts of its own patterns, repeated, against plain prose.

A start repeated is what a hostile transcript would hold: each repetition is looked at, and none is
a secret. Prints one line of JSON: ``worst`` is the slowest start with its time for 256 KiB over
that of as much prose; ``growth`` the highest ratio of a start's time at 256 KiB to its time at
128 KiB (2.0 is linear, 4.0 would be quadratic); ``megabytes_a_second`` of prose.

    .venv/bin/python bench/scanner.py [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "memory"))

from test_scanner import STARTS  # the starts whose results the tests look at

from memoryd.memory.scanner import redact

SIZE = 1 << 18
PROSE = "The importer reads the archive in bounded slices, so memory stays flat at any size.\n"


def seconds(text: str, rounds: int) -> float:
    """The least time of ``rounds`` scans of ``text``, in seconds of the processor."""
    best = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        redact(text)
        best = min(best, time.process_time() - began)
    return best


def repeated(start: str, size: int) -> str:
    """``size`` characters of ``start``, again and again."""
    return start * (size // len(start))


def main() -> None:
    """Measure all starts and prose, and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    prose = seconds(repeated(PROSE, SIZE), rounds)
    whole, half = {}, {}
    for start in STARTS:
        whole[start] = seconds(repeated(start, SIZE), rounds)
        half[start] = seconds(repeated(start, SIZE // 2), rounds)
    slowest = max(whole, key=lambda start: whole[start])
    growth = max(whole[start] / half[start] for start in STARTS if whole[start] > 20 * prose)
    found = {
        "worst": {"start": slowest, "times_prose": round(whole[slowest] / prose, 1)},
        "worst_seconds": round(whole[slowest], 2),
        "growth": round(growth, 2),
        "megabytes_a_second": round(SIZE / prose / 1e6, 1),
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
