"""Real processes from the warm one of the tests: forked, let go at one moment, and asked."""

from __future__ import annotations

import json
import os
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any


def together(*works: Callable[[], Any]) -> list[Any]:
    """What each of ``works`` returns (as JSON), every one run in a process of its own.

    All begin at one moment, once all are there. What one opens of SQLite it opens itself. An
    exception in one is an error here, with its traceback.
    """
    ready, started = os.pipe(), os.pipe()
    children = [_fork(work, ready, started) for work in works]
    os.close(ready[1])
    os.close(started[0])
    for _ in works:
        os.read(ready[0], 1)
    os.close(started[1])  # the end of this pipe is the start
    os.close(ready[0])
    return [_answer(*child) for child in children]


def _fork(work: Callable[[], Any], ready: Sequence[int], started: Sequence[int]) -> tuple[int, int]:
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12: threads of others are not used
        pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:
        os.close(started[1])
        os.write(ready[1], b"x")
        os.read(started[0], 1)
        said = json.dumps({"returned": work()})
    except BaseException:  # noqa: BLE001 - told to the parent, which raises
        said = json.dumps({"raised": traceback.format_exc()})
    with os.fdopen(writing, "w", encoding="utf-8") as pipe:
        pipe.write(said)
    os._exit(0)


def _answer(pid: int, reading: int) -> Any:
    with os.fdopen(reading, encoding="utf-8") as pipe:
        said = json.loads(pipe.read() or '{"raised": "it died"}')
    os.waitpid(pid, 0)
    if "raised" in said:
        raise AssertionError(said["raised"])
    return said["returned"]
