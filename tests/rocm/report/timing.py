"""Times of whole models beside MIGraphX and PyTorch: `hipdnn-mlir compile` and `bench`, each in a process with a time limit."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from onnx_backend.report import Limits

from .machine import asked, ended

AGAINST = ("migraphx", "torch")
QUICK = ("resnet50", "bert12", "mobilenet_v2", "decoder")
ALL = (*QUICK, "resnet50-f16", "encoder-f16")
"""Names of bench/carried.py's models, and the decoder step of ``timed_model``."""
_TOLERANCE = ("--rtol", "0.05", "--atol", "0.05")
"""What is timed computes the same thing; how exactly is the matter of the suites."""


@dataclass(frozen=True)
class Time:
    """What one way to run a model took.

    Attributes:
        model: Which.
        way: What ran it.
        p50_ms: The median of its runs, copies of inputs and results among them; None where there is none.
        text: How ours compares with it, or why there is no time.
    """

    model: str
    way: str
    p50_ms: float | None
    text: str = ""


def times(target: str, names: Sequence[str], duration_s: float, limits: Limits) -> Iterator[Time]:
    """Time each model, as long as there is time and not too much of it has hung."""
    hung = 0
    for name in names:
        if time.monotonic() > limits.until or hung >= limits.hangs:
            why = "no time was left" if hung < limits.hangs else f"{hung} commands before it had hung"
            yield Time(name, "all", None, why)
            continue
        with TemporaryDirectory() as folder:
            for row in _times(name, target, Path(folder), duration_s, limits.case_s):
                hung += " hangs: " in row.text
                yield row


def _times(name: str, target: str, folder: Path, duration_s: float, limit_s: float) -> Iterator[Time]:
    model, program = folder / f"{name}.onnx", folder / f"{name}.hipdnn"
    problem = _written(name, model, limit_s)
    if not problem:
        problem = asked(("compile", str(model), "--target", target, "-o", str(program), "--json"), limit_s).get(
            "problem", ""
        )
    if problem:
        yield Time(name, "hipdnn-mlir", None, problem)
        return
    duration = ("--warmup", f"{duration_s / 2:g}", "--duration", f"{duration_s:g}", "--json")
    for how, flags in (("step by step", ()), ("recorded", ("--graph-capture",))):
        told = asked(("bench", str(program), *flags, *duration), limit_s)
        median = told["latencies"][0]["p50_ms"] if "latencies" in told else None
        yield Time(name, f"hipdnn-mlir, {how}", median, told.get("problem", ""))
    for other in AGAINST:
        beside = ("--graph-capture", "--reference", str(model), "--against", other, *_TOLERANCE)
        yield from _others(name, other, asked(("bench", str(program), *beside, *duration), limit_s), folder)


def _others(name: str, other: str, told: dict[str, Any], folder: Path) -> Iterator[Time]:
    """The times of others, which ran in turns with ours, recorded."""
    if "problem" in told:
        yield Time(name, other, None, told["problem"].replace(f"{folder}/", "").removeprefix(f"--against {other}: "))
        return
    for row, ratio in zip(told["latencies"][1:], told["ratios"], strict=True):
        noise = ", within noise" if ratio["within_noise"] else ""
        yield Time(name, row["name"], row["p50_ms"], f"ours / this {ratio['median']:.2f}{noise}")


def _written(name: str, model: Path, limit_s: float) -> str:
    """Write the model's file; what is wrong, or nothing."""
    command = [sys.executable, "-P", "-W", "ignore", "-m", "rocm.report.timed_model", name, str(model)]
    done = ended(command, limit_s)
    if done is None:
        return f"it hangs: it is not made within {limit_s:g} s"
    last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return f"it cannot be made: {last}" if done.returncode else ""
