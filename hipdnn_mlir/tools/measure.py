"""Wall-clock timing of repeated calls, several subjects interleaved so that a disturbance meets all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


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


def interleave(subjects: Mapping[str, Callable[[], object]], repeat: int, *, warm_up: int = 1) -> dict[str, Timing]:
    """Call every subject in turn, ``repeat`` rounds after ``warm_up`` untimed ones.

    Args:
        subjects: What to call, by name.
        repeat: Timed rounds, at least 1.
        warm_up: Rounds before them.

    Returns:
        The timing of each subject, in the same order.
    """
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for round_ in range(warm_up + repeat):
        for name, call in subjects.items():
            start = time.perf_counter()
            call()
            elapsed_ms = 1e3 * (time.perf_counter() - start)
            if round_ >= warm_up:
                times[name].append(elapsed_ms)
    return {name: summarize(values) for name, values in times.items()}
