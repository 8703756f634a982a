"""What a quick run leaves out: one case of each kind, in an order that may be cut anywhere, and time shared among the parts."""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable, Hashable, Iterable, Sequence

QUICK_S = 600.0


def representative(names: Iterable[str], kind: Callable[[str], Hashable]) -> list[str]:
    """The first case of each kind. The order is a drawn one, the same each time: what time is left for is a sample of all."""
    first: dict[Hashable, str] = {}
    for name in names:
        first.setdefault(kind(name), name)
    chosen = [*first.values()]
    random.Random(0).shuffle(chosen)
    return chosen


def sample_kind(name: str) -> Hashable:
    """Operator and first type of a sample: `sample 004 aten.mm(f16[2x3],...` -> ("aten.mm", "f16")."""
    found = re.match(r"sample \d+ ([^(]+)\W*(\w*)", name)
    return found.groups() if found else name


class Budget:
    """Time for all parts of a run: each gets its share of what is left when it begins.

    Args:
        seconds: For everything; infinite for a run that is not quick.
        shares: Of the parts, in their order.
    """

    def __init__(self, seconds: float, shares: Sequence[float]) -> None:
        self._end, self._shares = time.monotonic() + seconds, list(shares)

    def until(self) -> float:
        """When the next part is to end, as ``time.monotonic`` tells it."""
        if math.isinf(self._end):
            return math.inf
        now, whole = time.monotonic(), sum(self._shares)
        return now + max(0.0, self._end - now) * self._shares.pop(0) / whole
