"""The profile of a session: what each step of a run costs, against what it computes and what the device reaches."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ... import _runtime
from ...atomic_file import write_text
from ...errors import ModelError
from ..session import Session
from .ceilings import Ceilings, measure_ceilings
from .text import Order, lines_of
from .trace import trace_of
from .work import Work, work_of


@dataclass(frozen=True)
class Spread:
    """The times of what was repeated, in microseconds.

    Attributes:
        median_us: The middle one.
        p10_us: A tenth of them took less.
        p90_us: A tenth of them took more.
    """

    median_us: float
    p10_us: float
    p90_us: float

    @classmethod
    def of(cls, times_us: Sequence[float]) -> Spread:
        """Return the spread of some times."""
        p10, median, p90 = np.percentile(times_us, (10, 50, 90))
        return cls(float(median), float(p10), float(p90))


@dataclass(frozen=True)
class Roofline:
    """The least time that the device's ceilings allow a step.

    Attributes:
        bound: What that time is of: ``compute`` for the products at the peak of their element type, ``memory`` for the bytes at the
            bandwidth of copies, whichever is more.
        least_us: That time, in microseconds.
        reached: It over the median that was measured. More than 1 where the step's data was in caches.
    """

    bound: str
    least_us: float
    reached: float


@dataclass(frozen=True)
class StepCost:
    """What one step costs.

    Attributes:
        name: The step, named after the ONNX nodes it was made from.
        kind: ``execute`` for a graph, ``launch`` for a kernel, ``copy``.
        operations: What it computes; empty for a copy.
        engine: Engine of its plan; empty where there is none.
        description: The library's line about the plan, where it has one.
        workspace_bytes: Workspace of the plan.
        time: Its times over the recorded runs.
        share: Of the medians of all steps, 0 to 1.
        work: What it computes: bytes and operations.
        roofline: Its least time; None where that is not known.
    """

    name: str
    kind: str
    operations: str
    engine: str
    description: str
    workspace_bytes: int
    time: Spread
    share: float
    work: Work
    roofline: Roofline | None

    @property
    def nodes(self) -> tuple[str, ...]:
        """The ONNX nodes in the step's name. A node with a ``+`` in its own name is taken for several."""
        return tuple(part for part in self.name.split("+") if part)

    @property
    def gflops(self) -> float | None:
        """Operations a second, 1e9; None where they are not known."""
        return None if self.work.flops is None else _rate(self.work.flops, self.time.median_us)

    @property
    def gbytes_s(self) -> float:
        """Bytes read and written a second, 1e9."""
        return _rate(self.work.bytes_read + self.work.bytes_written, self.time.median_us)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {**asdict(self), "nodes": list(self.nodes), "gflops": self.gflops, "gbytes_s": self.gbytes_s}


@dataclass(frozen=True)
class RecordedRun:
    """One run with the time of each step.

    Attributes:
        began_us: When it was called, in microseconds after the warm-up.
        wall_us: From the call to the return.
        steps_began_us: When its first step began, from the same moment as ``began_us``.
        steps_us: The time of each step. Each begins where the one before it ends.
    """

    began_us: float
    wall_us: float
    steps_began_us: float
    steps_us: tuple[float, ...]


@dataclass(frozen=True)
class Profile:
    """What the steps of a program cost on a device.

    Attributes:
        device: Name of the device, or of its port where that does not tell.
        port: Port that it was run on.
        target: What the program was compiled for.
        threads: CPU threads of a run; 0 for all, or on a GPU.
        inputs: Input -> element type and dims of this profile, ``f32[1,3,224,224]``.
        warmup: Runs before the first that counts.
        repeat: Recorded runs, and as many plain ones in turns with them.
        steps: The steps, in the order of a run.
        run: The time of plain runs, from call to return: without events between the steps, with all that comes before and behind them.
        recorded: The time of the recorded runs, from the call into the runtime to its return: plain ones also check and make arrays.
        steps_sum_us: The median over the recorded runs of the sum of their steps.
        ceilings: What the device reaches at most.
        runs: The recorded runs.
    """

    device: str
    port: str
    target: str
    threads: int
    inputs: Mapping[str, str]
    warmup: int
    repeat: int
    steps: tuple[StepCost, ...]
    run: Spread
    recorded: Spread
    steps_sum_us: float
    ceilings: Ceilings
    runs: tuple[RecordedRun, ...]

    @property
    def overhead_us(self) -> float:
        """What a plain run takes beyond the sum of its steps: checking and copying arrays, queueing, gaps.

        Negative where runs overlap steps that were timed apart, or where the events between steps cost more than all that.
        """
        return self.run.median_us - self.steps_sum_us

    def lines(self, *, sort: Order = "time", limit: int | None = None, line: int | None = None) -> list[str]:
        """Return the profile as lines for a terminal: what was run, a table of the steps, and how they add up.

        Args:
            sort: What the steps are sorted by, one of ``text.ORDERS``: ``order`` is that of a run, ``roofline`` has the least first, the
                other numbers have the greatest first.
            limit: How many steps to list; all where None.
            line: Characters of a line, for which columns are folded; None for any length.

        Raises:
            ModelError: There is no such order.
        """
        return lines_of(self, sort, limit, line)

    def trace(self) -> dict[str, Any]:
        """Return the recorded runs in Chrome's trace event format: an event for each run and for each of its steps, when they happened.

        Times are microseconds after the warm-up. The plain runs lie between the recorded ones; they have no events.
        """
        return trace_of(self)

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a file, for Perfetto (https://ui.perfetto.dev) or ``chrome://tracing``.

        Raises:
            HipdnnMlirError: The file cannot be written.
        """
        write_text(path, json.dumps(self.trace()))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {
            **asdict(self),
            "steps": [step.to_dict() for step in self.steps],
            "overhead_us": self.overhead_us,
        }


def profile(session: Session, feeds: Mapping[str, Any], *, warmup: int = 5, repeat: int = 50) -> Profile:
    """Time the steps of a program at the sizes of these inputs.

    Plain runs and recorded ones take turns, so that what else the machine does concerns both. The device's ceilings are measured first,
    once in a process.

    Args:
        session: The session; nothing else should use its device meanwhile.
        feeds: As for ``Session.run``. Sizes between buckets are padded.
        warmup: Runs before the first that counts.
        repeat: Recorded runs.

    Raises:
        ModelError: As for ``Session.run``, or a number of runs is out of range.
        DeviceError: As for ``Session.run``.
    """
    for name, count, least in (("warmup", warmup, 0), ("repeat", repeat, 1)):
        if count < least:
            raise ModelError(f"{name} must be at least {least}", got=str(count))
    loaded, inputs = session.loaded_for(feeds)
    ceilings = measure_ceilings(session.device_settings)
    plain_us, runs = _timed(session, feeds, loaded, inputs, warmup, repeat)
    device = session.device
    given = zip(session.program_inputs, inputs, strict=True)
    return Profile(
        device=device.name or device.port,
        port=device.port,
        target=device.target,
        threads=device.threads,
        inputs={
            port.name: str(replace(port, shape=tuple(getattr(array, "shape", port.shape)))) for port, array in given
        },
        warmup=warmup,
        repeat=repeat,
        steps=_costs(loaded.steps(), [work_of(row) for row in loaded.work()], runs, ceilings),
        run=Spread.of(plain_us),
        recorded=Spread.of([run.wall_us for run in runs]),
        steps_sum_us=Spread.of([sum(run.steps_us) for run in runs]).median_us,
        ceilings=ceilings,
        runs=tuple(runs),
    )


def _timed(
    session: Session,
    feeds: Mapping[str, Any],
    loaded: _runtime.Session,
    inputs: list[Any],
    warmup: int,
    repeat: int,
) -> tuple[list[float], list[RecordedRun]]:
    """Return the times of plain runs, in microseconds, and the recorded ones."""
    plain_us: list[float] = []
    runs: list[RecordedRun] = []
    origin_s = time.perf_counter()

    def plain() -> None:
        called_s = time.perf_counter()
        session.run(None, feeds)
        plain_us.append(1e6 * (time.perf_counter() - called_s))

    def recorded() -> None:
        called_s = time.perf_counter()
        ((steps_began_s, steps_us),) = loaded.profile(inputs, 1)
        wall_us = 1e6 * (time.perf_counter() - called_s)
        began_us, steps_began_us = (1e6 * (moment - origin_s) for moment in (called_s, steps_began_s))
        runs.append(RecordedRun(began_us, wall_us, steps_began_us, tuple(steps_us)))

    for number in range(warmup + repeat):
        if number == warmup:
            plain_us.clear()
            runs.clear()
            origin_s = time.perf_counter()
        # What runs second may find threads that have not gone to sleep yet, so each is second half of the time.
        for turn in (plain, recorded) if number % 2 == 0 else (recorded, plain):
            turn()
    return plain_us, runs


def _costs(
    rows: Sequence[Mapping[str, Any]], works: Sequence[Work], runs: Sequence[RecordedRun], ceilings: Ceilings
) -> tuple[StepCost, ...]:
    """Return what each step costs, from its row of ``_runtime.Session.steps`` and its times."""
    spreads = [Spread.of(times_us) for times_us in zip(*(run.steps_us for run in runs), strict=True)]
    total_us = sum(spread.median_us for spread in spreads)
    return tuple(
        StepCost(
            name=row["name"],
            kind=row["kind"],
            operations=row.get("summary", ""),
            engine=row.get("engine", ""),
            description=row.get("description", ""),
            workspace_bytes=row.get("workspace_bytes", 0),
            time=spread,
            share=spread.median_us / total_us if total_us else 0.0,
            work=work,
            roofline=_roofline(work, spread.median_us, ceilings),
        )
        for row, work, spread in zip(rows, works, spreads, strict=True)
    )


def _roofline(work: Work, median_us: float, ceilings: Ceilings) -> Roofline | None:
    """Return the least time of a step; None where a ceiling is missing or its work is not known."""
    if ceilings.gbytes_s is None or work.flops is None:
        return None
    least_us = {"memory": (work.bytes_read + work.bytes_written) / ceilings.gbytes_s / 1e3}
    if work.product_dtype is not None:
        peak = ceilings.gflops.get(work.product_dtype)
        if peak is None:
            return None
        least_us["compute"] = work.product_flops / peak / 1e3
    bound = max(least_us, key=least_us.__getitem__)
    return Roofline(bound, least_us[bound], least_us[bound] / median_us if median_us else 0.0)


def _rate(amount: int, elapsed_us: float) -> float:
    """Return so much a second, in 1e9; 0 for no time that could be measured."""
    return amount / elapsed_us / 1e3 if elapsed_us else 0.0
