"""Named points beside each effect, where a test may stop the process or raise.

``reach("plan.recorded")`` does nothing in production. The crash tests replace ``hook`` in a child
process of their own and kill it there, so no switch for it exists in the product.
"""

from __future__ import annotations

from collections.abc import Callable


def _nothing(point: str) -> None:
    """The hook of production."""


hook: Callable[[str], None] = _nothing


def reach(point: str) -> None:
    """Say that ``point`` (``noun.verb``) has just happened."""
    hook(point)
