"""A profile as lines of text with aligned columns."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, get_args

from ...errors import ModelError
from ...tables import aligned

if TYPE_CHECKING:
    from .profile import Profile, Spread, StepCost

Order = Literal["time", "order", "name", "bytes", "flops", "roofline"]
"""What a table of steps may be sorted by."""

ORDERS: tuple[Order, ...] = get_args(Order)

_UNKNOWN = "-"

_KEYS: dict[Order, Callable[[StepCost], Any]] = {
    "time": lambda step: -step.time.median_us,
    "order": lambda _: 0,
    "name": lambda step: step.name,
    "bytes": lambda step: -(step.work.bytes_read + step.work.bytes_written),
    "flops": lambda step: -(step.work.flops or 0),
    "roofline": lambda step: step.roofline.reached if step.roofline else float("inf"),
}
"""Slowest, largest, and least near the roofline first; steps that are equal stay in the order of a run."""

_COLUMNS = ("us", "p10", "p90", "share", "GFLOP/s", "GB/s", "bound", "roofline", "kind", "engine", "step", "operations")
_NUMBERS = _COLUMNS[: _COLUMNS.index("kind")]


def lines_of(profile: Profile, sort: Order, limit: int | None, line: int | None) -> list[str]:
    """Return a profile as ``Profile.lines`` does."""
    if sort not in _KEYS:
        raise ModelError(f"unknown order '{sort}'", expected=", ".join(ORDERS))
    steps = sorted(profile.steps, key=_KEYS[sort])[:limit]
    left_out = len(profile.steps) - len(steps)
    return [
        *(part for text in _head(profile) for part in (wrap(text, line) if line else [text])),
        "",
        *aligned(_COLUMNS, [_cells(step) for step in steps], right=_NUMBERS, line=line),
        *([f"and {left_out} more steps"] if left_out else []),
        "",
        *_sums(profile),
    ]


def _head(profile: Profile) -> list[str]:
    inputs = ", ".join(f"{name}: {text}" for name, text in profile.inputs.items()) or "no inputs"
    threads = f", {profile.threads} threads" if profile.threads else ""
    peaks = ", ".join(f"{rate:.0f} GFLOP/s {dtype}" for dtype, rate in profile.ceilings.gflops.items())
    bandwidth = profile.ceilings.gbytes_s
    copies = f"{bandwidth:.1f} GB/s" if bandwidth is not None else "no bandwidth"
    return [
        f"{profile.target} on {profile.device}{threads}; {inputs}",
        f"{profile.repeat} recorded runs after {profile.warmup} that do not count; ceilings measured here: {copies}, {peaks or 'no peak'}",
    ]


def _sums(profile: Profile) -> list[str]:
    gap_us = profile.overhead_us
    part = f" ({gap_us / profile.run.median_us:.0%} of a run)" if profile.run.median_us else ""
    return [
        f"a run           {_spread(profile.run)}",
        f"sum of steps    {profile.steps_sum_us:.1f} us",
        f"beyond steps    {gap_us:.1f} us{part}: arrays, queueing, gaps",
        f"a recorded run  {_spread(profile.recorded)}",
    ]


def _spread(times: Spread) -> str:
    return f"{times.median_us:.1f} us (p10 {times.p10_us:.1f}, p90 {times.p90_us:.1f})"


def _cells(step: StepCost) -> tuple[str, ...]:
    roofline = step.roofline
    return (
        f"{step.time.median_us:.1f}",
        f"{step.time.p10_us:.1f}",
        f"{step.time.p90_us:.1f}",
        f"{step.share:.1%}",
        f"{step.gflops:.1f}" if step.gflops is not None else _UNKNOWN,
        f"{step.gbytes_s:.1f}",
        roofline.bound if roofline else _UNKNOWN,
        f"{roofline.reached:.0%}" if roofline else _UNKNOWN,
        step.kind,
        step.engine or _UNKNOWN,
        step.name,
        step.operations,
    )
