"""Whatever is logged is one JSON object a line, also what a library says."""

from __future__ import annotations

import io
import json
import logging

from memoryd.memory import log


def test_what_a_library_says_is_a_line_like_any_other() -> None:
    """As it stands in its code, once however often logging was configured."""
    stream = io.StringIO()
    for _ in range(2):
        log.configure(stream)
        log.logger().info("daemon.started")

    logging.getLogger("huey.consumer").warning("Shutdown timeout of %ss elapsed", "s3cret")
    logging.getLogger("watchdog.observers").warning("heard elsewhere")

    *_, said = lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["daemon.started"] * 2 + ["library.said"]
    assert (said["logger"], said["level"]) == ("huey.consumer", "warning")
    assert said["message"] == "Shutdown timeout of %ss elapsed"
