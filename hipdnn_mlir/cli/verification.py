"""What a precision costs: programs of one model beside ONNX Runtime, on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hipdnn_mlir_runtime.cli import render
from hipdnn_mlir_runtime.cli.arrays import Array, OutputError, is_constant
from hipdnn_mlir_runtime.cli.execution import reference_runner
from hipdnn_mlir_runtime.cli.inputs import Given, Inputs
from hipdnn_mlir_runtime.dtypes import F32, find_numpy
from hipdnn_mlir_runtime.precision import UNCHANGED
from hipdnn_mlir_runtime.session.options import SessionOptions
from hipdnn_mlir_runtime.session.session import Session

TOLERANCES = {"f64": 1e-4, "f32": 1e-4, "f16": 5e-3, "bf16": 3e-2}
"""Largest error that is accepted, relative to the output's scale, by the type that a program computes in."""


@dataclass(frozen=True)
class Verification:
    """The errors of all programs, in their order."""

    errors: Sequence[OutputError]

    @property
    def is_within_tolerance(self) -> bool:
        """Whether every output is."""
        return all(error.within for error in self.errors)

    def __str__(self) -> str:
        return render.errors(self.errors)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {"outputs": [{**asdict(error), "within": error.within} for error in self.errors]}


def verify(
    model: Path,
    programs: Mapping[str, Path],
    *,
    tolerance: float | None = None,
    inputs: Given | None = None,
    session: SessionOptions | None = None,
) -> Verification:
    """Run programs of a model and the model in ONNX Runtime on the same inputs.

    Args:
        model: the ONNX file.
        programs: precision -> program file.
        tolerance: for the last program; by default that of ``TOLERANCES``, as for the others.
        inputs: what is said of inputs; all are random by default.
        session: options of the sessions; their threads are ONNX Runtime's too.

    Raises:
        ModelError: ONNX Runtime is not installed, or refuses the model; what is said of inputs does not fit.
    """
    options = session or SessionOptions()
    sessions = {precision: Session(path, **options) for precision, path in programs.items()}
    first = next(iter(sessions.values()))
    made = Inputs(first, inputs)
    feeds = made.draw()
    others = made.draw_others(feeds)
    names = [port.name for port in first.outputs]
    run_reference = reference_runner(model, names, options.get("threads", 0))
    wanted = run_reference(feeds)
    by_others = [None] * len(wanted) if others is None else run_reference(others)
    errors = []
    for precision, loaded in sessions.items():
        given = tolerance if precision == list(programs)[-1] else None
        results = loaded.run(None, feeds)
        errors += [_error(precision, *row, given) for row in zip(names, results, wanted, by_others, strict=True)]
    return Verification(errors)


def _error(
    precision: str, name: str, got: Array, want: Array, other: Array | None, tolerance: float | None
) -> OutputError:
    found = find_numpy(want.dtype)
    kind = precision if precision != UNCHANGED else found.name if found is not None and found.is_float else F32.name
    limit = TOLERANCES[kind] if tolerance is None else tolerance
    constant = is_constant(want, other, lambda a, b: a.shape == b.shape and distances(a, b)[0] <= limit)
    return OutputError(precision, name, *distances(got, want), limit, constant)


def distances(got: Array, want: Array) -> tuple[float, float]:
    """Return the largest difference over the largest magnitude of ``want``, and the ratio of the root mean squares.

    What is equal, NaN included, does not differ; what is not finite on one side only is infinitely far. Of integers and booleans both
    are the share of elements that differ.
    """
    if want.dtype.kind in "iub":
        share = float(np.mean(got != want)) if want.size else 0.0
        return share, share
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        delta = np.where(same, 0.0, np.abs(a - b))
    delta = np.where(np.isnan(delta), np.inf, delta)
    magnitude = np.where(np.isfinite(b), np.abs(b), 0.0)
    scale, rms = float(magnitude.max(initial=0.0)), float(np.sqrt(np.mean(magnitude**2))) if b.size else 0.0
    largest, mean = float(delta.max(initial=0.0)), float(np.sqrt(np.mean(delta**2))) if b.size else 0.0
    return largest / (scale or 1.0), mean / (rms or 1.0)
