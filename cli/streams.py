"""The three standard streams: open whatever the caller closed, and flushed before the end.

A number that is free (0, 1, 2) is given to the next file that is opened: a database would then get
log lines written into it. So what is closed is opened on ``/dev/null`` before anything else is.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

_NAMES = ("stdin", "stdout", "stderr")


def open_closed() -> None:
    """Open each standard stream that the caller closed, on nothing."""
    for number, name in enumerate(_NAMES):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free: this one
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def flushed() -> OSError | None:
    """Write what is left to be written; why that cannot be, None where it could.

    What cannot be written is dropped, so that Python does not complain when it closes the stream.
    """
    refused = None
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except ValueError:
            continue  # closed by who used it
        except OSError as error:
            refused = error
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), number)
    return refused
