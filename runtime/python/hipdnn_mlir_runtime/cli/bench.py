"""Latency and throughput of a program, beside other ways to run its model."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import ModelError
from ..session.options import SessionOptions
from ..session.session import Session
from .arrays import Array, compare
from .competitors import COMPETITORS, Competitor, Task
from .inputs import Given, Inputs
from .measure import PAUSE_S
from .tables import table

OURS = "hipdnn-mlir"
_BLOCK_S = 0.1
"""Time of a subject's turn: long against the pause between turns, short against what disturbs a machine."""


@dataclass(frozen=True)
class Latency:
    """Times of one subject, in milliseconds.

    Attributes:
        name: What ran.
        runs: Timed runs.
        p50_ms: Median.
        p90_ms: What nine runs in ten stay below.
        p99_ms: What 99 runs in a hundred stay below.
        fastest_ms: The fastest run.
        per_second: Runs a second, times the batch size.
    """

    name: str
    runs: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    fastest_ms: float
    per_second: float


@dataclass(frozen=True)
class Ratio:
    """Our time over another's: the median of the ratios of turns that follow one another, and the middle half of these ratios.

    Attributes:
        against: The other.
        median: Below 1 where we are faster.
        low: A quarter of the turns lie below.
        high: A quarter of the turns lie above.
    """

    against: str
    median: float
    low: float
    high: float

    @property
    def is_noise(self) -> bool:
        """Whether the middle half of the turns has both signs, so that neither is faster."""
        return self.low <= 1 <= self.high

    def __str__(self) -> str:
        verdict = "within noise" if self.is_noise else "faster" if self.median < 1 else "slower"
        return f"{self.median:.3f} ({self.low:.3f} to {self.high:.3f}), {verdict}"


@dataclass(frozen=True)
class Benchmark:
    """What was measured.

    Attributes:
        batch: Items in a run: the first dim of the inputs where they agree in it, else 1.
        latencies: A row per subject, ours first.
        ratios: A row per other subject.
    """

    batch: int
    latencies: Sequence[Latency]
    ratios: Sequence[Ratio]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {
            "batch": self.batch,
            "latencies": [asdict(row) for row in self.latencies],
            "ratios": [{**asdict(row), "within_noise": row.is_noise} for row in self.ratios],
        }

    def __str__(self) -> str:
        columns = ("", "runs", "p50 ms", "p90 ms", "p99 ms", "fastest ms", "items/s" if self.batch > 1 else "runs/s")
        rows = [
            (
                row.name,
                row.runs,
                *(f"{value:.3f}" for value in (row.p50_ms, row.p90_ms, row.p99_ms, row.fastest_ms)),
                f"{row.per_second:.0f}" if row.per_second >= 100 else f"{row.per_second:.1f}",
            )
            for row in self.latencies
        ]
        parts = [table(f"latency, batch {self.batch}", columns, rows, columns[1:])]
        if self.ratios:
            ratios = [(f"{OURS} / {row.against}", row) for row in self.ratios]
            parts.append(table("ratio of times, and its middle half over the turns", ("", "ratio"), ratios))
        return "\n\n".join(parts)


def benchmark(
    program: Path,
    inputs: Given,
    *,
    model: Path | None,
    against: Sequence[str],
    warmup_s: float,
    duration_s: float,
    batch: int | None,
    session: SessionOptions,
    rtol: float | None = None,
    atol: float | None = None,
) -> Benchmark:
    """Time a program, in turns with others.

    Args:
        program: The program file.
        inputs: What is said of inputs; all are random by default.
        model: The ONNX or `.pt2` file that the others run.
        against: Names in ``COMPETITORS``.
        warmup_s: Seconds of runs of each that are not timed.
        duration_s: Seconds of timed runs of each.
        batch: Size of the first dim of the inputs; None where they are static, or for 1.
        session: Options of our session; the others get its threads.
        rtol: Relative tolerance on the results of the others, or None for the element type's.
        atol: Absolute tolerance, or None for the element type's.

    Raises:
        ModelError: Another is not installed, or refuses the model, or has other results; the inputs have another batch size.
    """
    loaded = Session(program, **session)
    if batch is not None:
        inputs = replace(inputs, sizes={**inputs.sizes, **_batch_sizes(loaded, batch)})
    feeds = Inputs(loaded, inputs).draw()
    names = [port.name for port in loaded.outputs]
    outputs = dict(zip(names, loaded.run(None, feeds), strict=True))
    subjects: dict[str, Callable[[], object]] = {OURS: lambda: loaded.run(None, feeds)}
    for name in against:
        if model is None:
            hint = "name the model: --reference MODEL"
            raise ModelError("a program file does not hold its model", where="--against", hint=hint)
        task = Task(model, names, feeds, session.get("threads", 0), on_gpu=loaded.device.port != "host")
        for other in COMPETITORS[name](task):
            _check_results(outputs, other, rtol, atol)
            subjects[other.title] = other.run
    first_dims = {array.shape[0] if array.ndim else 1 for array in feeds.values()}
    items = (first_dims.pop() if len(first_dims) == 1 else 1) or 1
    return summarized(measured(subjects, warmup_s, duration_s), items)


def _check_results(outputs: Mapping[str, Array], other: Competitor, rtol: float | None, atol: float | None) -> None:
    """Refuse to time what computes something else."""
    for (name, got), want in zip(outputs.items(), other.results, strict=True):
        found = compare(name, got, want, rtol, atol)
        if not found.within:
            raise ModelError(
                f"output {name!r} differs from that of {other.title}, so nothing is timed",
                where="--against",
                expected=f"|got - want| <= {found.atol:g} + {found.rtol:g} * |want|",
                got=f"a difference of {found.absolute:.2g}",
                hint="see run --compare, or give --rtol and --atol",
            )


def _batch_sizes(session: Session, batch: int) -> dict[str, int]:
    """Return the sizes that give inputs a batch."""
    sizes = {}
    for port in session.inputs:
        first = port.shape[0] if port.shape else batch
        if isinstance(first, int) and first != batch:
            message = f"the first dimension of input {port.name!r} is static"
            hint = "compile the model with this size, or with a dynamic one"
            raise ModelError(message, where="--batch", expected=str(first), got=str(batch), hint=hint)
        if isinstance(first, str):
            sizes[first] = batch
    return sizes


def measured(
    subjects: Mapping[str, Callable[[], object]], warmup_s: float, duration_s: float
) -> dict[str, list[list[float]]]:
    """Return times in milliseconds by subject, a list for each turn; subjects take turns, so that a disturbance meets all alike."""
    for call in subjects.values():
        _for(call, warmup_s)
    turns: dict[str, list[list[float]]] = {name: [] for name in subjects}
    for _ in range(max(1, round(duration_s / _BLOCK_S))):
        for name, call in subjects.items():
            if len(subjects) > 1:
                time.sleep(PAUSE_S)
                call()  # brings the caches back
            turns[name].append(_for(call, _BLOCK_S))
    return turns


def summarized(turns: Mapping[str, Sequence[Sequence[float]]], batch: int) -> Benchmark:
    """Return percentiles of all times, and ratios of the first subject's turns to those of the others beside them."""
    latencies = []
    for name, blocks in turns.items():
        ordered = sorted(elapsed_ms for block in blocks for elapsed_ms in block)
        p50, p90, p99 = (_percentile(ordered, share) for share in (0.5, 0.9, 0.99))
        rate = 1e3 * batch * len(ordered) / sum(ordered)
        latencies.append(Latency(name, len(ordered), p50, p90, p99, ordered[0], rate))
    medians = {name: [statistics.median(block) for block in blocks] for name, blocks in turns.items()}
    ours, *others = medians
    ratios = []
    for name in others:
        each = sorted(a / b for a, b in zip(medians[ours], medians[name], strict=True))
        ratios.append(Ratio(name, statistics.median(each), _percentile(each, 0.25), _percentile(each, 0.75)))
    return Benchmark(batch, latencies, ratios)


def _for(call: Callable[[], object], seconds: float) -> list[float]:
    """Call for a time, at least once, and return what each call took, in milliseconds."""
    end = time.perf_counter() + seconds
    times = []
    start = time.perf_counter()
    while True:
        call()
        now = time.perf_counter()
        times.append(1e3 * (now - start))
        if now >= end:
            return times
        start = now


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value that a share of rising values does not exceed."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
