"""What tools print, as the inside of JSON strings, cut from one text that is escaped once."""

from __future__ import annotations

import json
import random

_BANK_BYTES = 4_000_000
#: Longest output of a tool but for the few that print a whole file.
_LONGEST = 250_000
_KINDS = (
    "test_{a:05d} PASSED [ {b:3d}%] in 0.{c:03d}s",
    "{a:7d} DEBUG pool: lease {b} renewed, {c} rows left",
    'src/mod{b}.py:{c}: note: defined here "value_{a}"',
    "drwxr-xr-x  {b} root root {a:8d} Nov {c:2d} 10:00 build-{a:x}",
    "\tat Worker.run{b} (/srv/app/worker.js:{c}:{b})",
    "Always run the {a:x} check before changing {b:x}, said the linter.",
)


class Outputs:
    """Gives outputs of any length; the same for the same ``chance`` and size of the archive."""

    def __init__(self, chance: random.Random, longest: int = _BANK_BYTES) -> None:
        lines, size = [], 0
        while size < min(longest, _BANK_BYTES):
            values = {name: int(chance.random() * top) for name, top in _TOPS.items()}
            text = _KINDS[int(chance.random() * len(_KINDS))].format(**values)
            lines.append(json.dumps(f"{text}\n")[1:-1].encode())
            size += len(lines[-1])
        self._bank = b"".join(lines)
        self._starts, start = [], 0
        for each in lines:
            self._starts.append(start)
            start += len(each)

    def cut(self, chance: random.Random, size: int) -> bytes:
        """Some ``size`` bytes of output, of whole lines."""
        found, left = [], size
        while left > 0:
            first = int(chance.random() * len(self._starts) * 0.9)
            start = self._starts[first]
            last = min(len(self._starts) - 1, first + max(1, left // 45))
            found.append(self._bank[start : self._starts[last]])
            left -= len(found[-1])
        return b"".join(found)

    @staticmethod
    def size(chance: random.Random, longest: int) -> int:
        """How long an output is: some 2 KB, few of a hundred, none longer than ``longest``."""
        return max(40, min(int(chance.lognormvariate(7.6, 1.4)), _LONGEST, longest))


_TOPS = {"a": 99_999, "b": 100, "c": 30}
