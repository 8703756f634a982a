"""Timing of repeated calls, several subjects interleaved so that a disturbance meets all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

PAUSE_S = 0.05
"""Between turns: worker threads of ONNX Runtime were seen to spin for 20 to 50 ms after a run."""
UNCOUNTED_CALLS = 2


@dataclass(frozen=True)
class Timing:
    """Times of one subject over all its runs, in milliseconds."""

    runs: int
    median_ms: float
    fastest_ms: float
    p90_ms: float

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return asdict(self)


def summarize(times_ms: list[float]) -> Timing:
    """Return the summary of a non-empty list of times."""
    ordered = sorted(times_ms)
    p90 = ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]
    return Timing(len(ordered), statistics.median(ordered), ordered[0], p90)


def interleave(
    subjects: Mapping[str, Callable[[], object]],
    repeat: int,
    *,
    block: int = 10,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Time every subject, in turns.

    A turn is a pause, in which threads of the other subjects that still spin go to sleep, calls that do not count (they
    bring the caches back), and a block that does.

    Args:
        subjects: What to call, by name.
        repeat: Timed calls of each, at least 1.
        block: Timed calls in a turn.
        clock: Seconds: of the wall, or of the process's CPU time where other processes disturb.

    Returns:
        The timing of each subject, in the same order.
    """
    times: dict[str, list[float]] = {name: [] for name in subjects}
    while min(map(len, times.values())) < repeat:
        for name, call in subjects.items():
            time.sleep(PAUSE_S)
            for _ in range(UNCOUNTED_CALLS):
                call()
            for _ in range(min(block, repeat - len(times[name]))):
                start = clock()
                call()
                times[name].append(1e3 * (clock() - start))
    return {name: summarize(values) for name, values in times.items()}
