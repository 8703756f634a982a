"""What a precision costs: programs of one model beside ONNX Runtime or PyTorch, on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hipdnn_mlir_runtime.cli import render
from hipdnn_mlir_runtime.cli.arrays import Array, OutputError, distances, is_constant
from hipdnn_mlir_runtime.cli.execution import reference_runner
from hipdnn_mlir_runtime.cli.inputs import Given, Inputs
from hipdnn_mlir_runtime.dtypes import F32, find_numpy
from hipdnn_mlir_runtime.precision import UNCHANGED
from hipdnn_mlir_runtime.pytorch import is_exported
from hipdnn_mlir_runtime.session.options import SessionOptions
from hipdnn_mlir_runtime.session.session import Session

from .bisection import Bisection

TOLERANCES = {"f64": 1e-4, "f32": 1e-4, "tf32": 5e-3, "f16": 5e-3, "bf16": 3e-2}
"""Largest error that is accepted, relative to the output's scale, by the type that a program computes in."""
QUANTIZED = 0.1
"""The same of a quantized model beside the one that it was made of."""


@dataclass(frozen=True)
class Verification:
    """The errors of all programs, in their order.

    Attributes:
        errors: a row per program and output.
        sessions: the programs by precision.
        feeds: what they ran on.
        bisection: what comparing one of them step by step found, where asked for.
    """

    errors: Sequence[OutputError]
    sessions: Mapping[str, Session] = field(repr=False)
    feeds: Mapping[str, Array] = field(repr=False)
    bisection: Bisection | None = None

    @property
    def suspect(self) -> str:
        """The precision to look at step by step: the first with an output beyond tolerance, else the last."""
        beyond = [error.precision for error in self.errors if not error.within]
        return beyond[0] if beyond else list(self.sessions)[-1]

    @property
    def is_vacuous(self) -> bool:
        """Whether nothing is verified: every output is constant."""
        return all(error.verdict is None for error in self.errors)

    @property
    def is_verified(self) -> bool:
        """Whether every output is within tolerance, at least one says something of the program, and no step is at fault."""
        has_fault = self.bisection is not None and self.bisection.fault is not None
        return all(error.within for error in self.errors) and not self.is_vacuous and not has_fault

    def __str__(self) -> str:
        parts = [render.errors(self.errors)]
        if self.is_vacuous:
            parts.append("Nothing is verified: every output is constant. Give other inputs (--input, --range).")
        if self.bisection is not None:
            parts.append(str(self.bisection))
            if self.bisection.first_beyond is None and any(not error.within for error in self.errors):
                parts.append(
                    "An output is beyond tolerance all the same: the fault shows only in the program as it is, "
                    "not with the results of its steps as more outputs."
                )
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        data: dict[str, Any] = {"outputs": [error.to_dict() for error in self.errors], "verified": self.is_verified}
        return data if self.bisection is None else {**data, "bisection": self.bisection.to_dict()}


def tolerance_for(precision: str, want: Array, given: float | None = None) -> float:
    """Return the tolerance on a value: what is given, else by the type that the program computes in."""
    found = find_numpy(want.dtype)
    kind = precision if precision != UNCHANGED else found.name if found is not None and found.is_float else F32.name
    return TOLERANCES[kind] if given is None else given


def verify(
    model: Path,
    programs: Mapping[str, Path],
    *,
    tolerance: float | None = None,
    is_quantized: bool = False,
    inputs: Given | None = None,
    session: SessionOptions | None = None,
) -> Verification:
    """Run programs of a model and the model itself on the same inputs, an ONNX file in ONNX Runtime, a `.pt2` file in PyTorch.

    Args:
        model: the file.
        programs: precision -> program file.
        tolerance: for the last program; by default that of ``TOLERANCES``, as for the others.
        is_quantized: whether the programs are those of the model quantized: their tolerance is then QUANTIZED.
        inputs: what is said of inputs; all are random by default.
        session: options of the sessions; their threads are the reference's too.

    Raises:
        ModelError: ONNX Runtime or PyTorch is not installed, or refuses the model; what is said of inputs does not fit.
    """
    options = session or SessionOptions()
    sessions = {precision: Session(path, **options) for precision, path in programs.items()}
    first = next(iter(sessions.values()))
    made = Inputs(first, inputs)
    feeds = made.draw()
    others = made.draw_others(feeds)
    names = [port.name for port in first.outputs]
    run_reference = reference_runner("torch" if is_exported(model) else "ort", model, names, options.get("threads", 0))
    wanted = run_reference(feeds)
    by_others = [None] * len(wanted) if others is None else run_reference(others)
    errors = []
    for precision, loaded in sessions.items():
        given = tolerance if precision == list(programs)[-1] else None
        given = QUANTIZED if given is None and is_quantized else given
        results = loaded.run(None, feeds)
        errors += [_error(precision, *row, given) for row in zip(names, results, wanted, by_others, strict=True)]
    return Verification(errors, sessions, feeds)


def _error(
    precision: str, name: str, got: Array, want: Array, other: Array | None, tolerance: float | None
) -> OutputError:
    limit = tolerance_for(precision, want, tolerance)
    constant = is_constant(want, other, lambda a, b: distances(a, b)[0] <= limit)
    return OutputError(precision, name, *distances(got, want), limit, constant)
