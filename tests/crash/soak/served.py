"""``python -m soak.served FOLDER``: ``memoryd run`` from its beginning, in a soak's places.

Only the model and the clock are others than a person's.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent))

from memoryd.daemon import lifecycle
from soak.clock import SteppedClock
from soak.places import Places
from soak.processes import prepare


def main() -> None:
    """Be ``memoryd run``."""
    places = Places(Path(sys.argv[1]), mounted=False)
    prepare(places)
    lifecycle.SystemClock = lambda: SteppedClock(places.clock)  # type: ignore[assignment,misc]
    sys.argv = ["memoryd", "run"]
    from memoryd.cli.main import main as memoryd

    memoryd()


if __name__ == "__main__":
    main()
