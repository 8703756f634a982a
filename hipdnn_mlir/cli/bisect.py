"""Finds the step of a program that is at fault: compares pieces of its model with ONNX Runtime."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hipdnn_mlir_runtime import _runtime
from hipdnn_mlir_runtime.cli.arrays import Array, OutputError, distances, is_constant
from hipdnn_mlir_runtime.cli.execution import reference_runner
from hipdnn_mlir_runtime.cli.inputs import symbol_sizes
from hipdnn_mlir_runtime.errors import UnsupportedError
from hipdnn_mlir_runtime.session.options import SessionOptions
from hipdnn_mlir_runtime.session.session import Session

from ..frontend.model_file import read_model
from ..ops.strides import Dims, Strides
from ..report.page.sizes import body_at
from ..report.page.steps import steps_of
from ..report.pieces import ModelInPieces, Piece
from .bisection import Bisection, Reproducer, StepErrors

_BATCH_BYTES = 1 << 30
"""Values that are compared at a time: each is in memory as ONNX Runtime's, as an input and as an output."""
Arrays = Mapping[str, Array]
UseCompiled = Callable[[Path, Callable[[Path], dict[str, Array]]], dict[str, Array]]
"""Compiles an ONNX file as the program in question was, and returns what a function makes of the program file."""


class Bisector:
    """Compares the steps of a program with ONNX Runtime.

    Args:
        model: the ONNX file.
        program: its program.
        session: that, loaded.
        feeds: inputs of a run, whose sizes those of the model become.
        precision: what the program was compiled with.
        tolerance_of: tolerance on a value, given ONNX Runtime's.
        use_compiled: compiles pieces.
        run_options: options of `hipdnn-mlir run` that compile and run a piece as the program was.
        options: of sessions.

    Raises:
        ModelError: the model cannot be read.
    """

    def __init__(
        self,
        model: Path,
        program: Path,
        session: Session,
        feeds: Arrays,
        *,
        precision: str,
        tolerance_of: Callable[[Array], float],
        use_compiled: UseCompiled,
        run_options: Sequence[str],
        options: SessionOptions,
    ) -> None:
        self._feeds, self._precision, self._tolerance_of = feeds, precision, tolerance_of
        self._use_compiled, self._run_options, self._options = use_compiled, run_options, options
        steps = session.loaded_for(feeds)[0].steps()
        self._steps = [_step(number, step) for number, step in enumerate(steps)]
        shapes = {name: array.shape for name, array in feeds.items()}
        results = _results(program, session, feeds)
        self._model = ModelInPieces(read_model(model), shapes, [step["name"] for step in steps], results)
        self._left_out: list[str] = []

    def bisect(self) -> Bisection:
        """Compare the steps as they follow each other; from the first beyond tolerance on, also on ONNX Runtime's inputs.

        Raises:
            HipdnnMlirError: a piece cannot be compiled, run or written.
        """
        with tempfile.TemporaryDirectory(prefix="hipdnn-mlir-") as folder:
            scratch = Path(folder)
            in_place: list[StepErrors] = []
            for batch in self._model.batches(_BATCH_BYTES):
                values = self._reference(batch, scratch)
                found = self._in_place(batch, values, scratch)
                in_place += found.values()
                first = _first_beyond(found)
                if first is not None:
                    return self._isolated(first, values, in_place, scratch)
        return Bisection(self._precision, in_place)

    def _isolated(self, first: Piece, values: Arrays, in_place: Sequence[StepErrors], scratch: Path) -> Bisection:
        """What is at fault: the first piece beyond tolerance if it is so by itself; else another that is, or none."""
        alone = self._alone([first], values, scratch)
        if _first_beyond(alone) is not None:
            made = self._reproducer(first, first.inputs, self._model.alone(first, values), values)
            return Bisection(self._precision, in_place, [*alone.values()], reproducer=made)
        rows: list[StepErrors] = []
        for batch in self._model.batches(_BATCH_BYTES):
            others = self._reference(batch, scratch)
            found = self._alone(batch, others, scratch)
            rows += found.values()
            piece = _first_beyond(found)
            if piece is not None:
                made = self._reproducer(piece, piece.inputs, self._model.alone(piece, others), others)
                break
        else:
            made = self._reproducer(first, [*self._feeds], self._model.until([first], values), values)
        return Bisection(self._precision, in_place, rows, list(dict.fromkeys(self._left_out)), made)

    def _reference(self, batch: Sequence[Piece], scratch: Path) -> dict[str, Array]:
        """ONNX Runtime's values of what pieces read and give."""
        names = [name for piece in batch for name in (*piece.inputs, *piece.outputs) if name not in self._feeds]
        names = list(dict.fromkeys(names))
        path = scratch / "reference.onnx"
        self._model.save(self._model.watched(names), path)
        found = reference_runner("ort", path, names, self._options.get("threads", 0))(self._feeds)
        return {**self._feeds, **dict(zip(names, found, strict=True))}

    def _alone(self, batch: Sequence[Piece], values: Arrays, scratch: Path) -> dict[Piece, StepErrors]:
        """Errors of pieces that read ONNX Runtime's values; all of them are compiled as one model."""
        pieces, path = list(batch), scratch / "pieces.onnx"
        while pieces:
            model, prefixes = self._model.side_by_side(pieces, values)
            pairs = list(zip(pieces, prefixes, strict=True))
            self._model.save(model, path)
            feeds = {
                prefix + name: self._model.to_memory(name, values[name])
                for piece, prefix in pairs
                for name in piece.inputs
            }
            try:
                got = self._use_compiled(path, partial(self._run, feeds=feeds))
            except UnsupportedError as error:
                pieces = self._without(pieces, error)
                continue
            return {piece: self._errors(piece, got, values, prefix) for piece, prefix in pairs}
        return {}

    def _without(self, pieces: Sequence[Piece], error: UnsupportedError) -> list[Piece]:
        """The pieces that have a place by themselves."""
        rejected = {name for reject in error.rejects for name in reject.node.split("+")}
        left = [piece for piece in pieces if rejected.isdisjoint(self._model.names_of(piece))]
        if len(left) == len(pieces):
            raise error
        self._left_out += [name for piece in pieces if piece not in left for name in self._model.names_of(piece)]
        return left

    def _in_place(self, batch: Sequence[Piece], values: Arrays, scratch: Path) -> dict[Piece, StepErrors]:
        """Errors of pieces that read what those before them gave."""
        path = scratch / "model.onnx"
        self._model.save(self._model.until(batch, values), path)
        got = self._use_compiled(path, partial(self._run, feeds=self._feeds))
        return {piece: self._errors(piece, got, values) for piece in batch}

    def _run(self, program: Path, feeds: Arrays) -> dict[str, Array]:
        session = Session(program, **self._options)
        names = [port.name for port in session.outputs]
        known = {port.name: feeds[port.name] for port in session.inputs}
        return dict(zip(names, session.run(names, known), strict=True))

    def _errors(self, piece: Piece, got: Arrays, values: Arrays, prefix: str = "") -> StepErrors:
        errors = []
        for name in piece.outputs:
            want = values[name]
            figures = distances(self._model.from_memory(name, got[prefix + name], want.shape), want)
            limit = self._tolerance_of(want)
            constant = is_constant(want, None, np.array_equal)
            errors.append(OutputError(self._precision, name, *figures, limit, constant))
        steps = [self._steps[number] for number in piece.steps]
        return StepErrors(steps, self._model.names_of(piece), piece.inputs, errors)

    def _reproducer(self, piece: Piece, inputs: Sequence[str], model: Any, values: Arrays) -> Reproducer:
        """Write a reduced model that ends in a piece, with its inputs and program, and run it."""
        folder = Path(tempfile.mkdtemp(prefix="hipdnn-mlir-bisect-"))
        path = folder / "model.onnx"
        self._model.save(model, path)
        feeds = {name: self._model.to_memory(name, values[name]) for name in inputs}
        arguments = []
        for number, name in enumerate(inputs):
            np.save(folder / f"input-{number}.npy", feeds[name])
            arguments += ["--input", f"{name}={folder / f'input-{number}.npy'}"]

        executables: set[str] = set()

        def kept(program: Path) -> dict[str, Array]:
            shutil.copyfile(program, path.with_suffix(".hipdnn"))
            executables.update(map(_executable, Session(program, **self._options).steps))
            return self._run(program, feeds)

        row = self._errors(piece, self._use_compiled(path, kept), values)
        worst, want = row.worst, values[row.worst.output]
        allowed = worst.tolerance * _scale(want) if want.dtype.kind not in "iub" else 0.0
        comparison = ["--compare", "ort", "--rtol", "0", "--atol", repr(allowed)]
        command = shlex.join(["hipdnn-mlir", "run", str(path), *arguments, *comparison, *self._run_options])
        (folder / "command.txt").write_text(command + "\n")
        return Reproducer(folder, command, worst, executables.issuperset(step["executable"] for step in row.steps))


def _first_beyond(found: Mapping[Piece, StepErrors]) -> Piece | None:
    """The first piece beyond tolerance."""
    return next((piece for piece, row in found.items() if not row.within), None)


def _results(program: Path, session: Session, feeds: Arrays) -> list[list[tuple[Dims, Strides]]]:
    """Dims and strides of what each step of a program writes; of copies nothing is known."""
    sizes = {
        name: next((bucket for bucket in session.buckets.get(name, ()) if bucket >= size), size)
        for name, size in symbol_sizes(session, feeds).items()
    }
    steps, _ = steps_of(body_at(json.loads(_runtime.Program.load(str(program)).text), sizes))
    return [
        [(tuple(row.dims), tuple(row.strides)) for row in step.operands if row.role == "out" and row.strides]
        for step in steps
    ]


def _step(number: int, step: Mapping[str, Any]) -> dict[str, Any]:
    """What is shown of a step."""
    return {
        "number": number,
        "kind": step["kind"],
        "engine": step.get("engine", ""),
        "executable": _executable(step),
        "operations": step.get("summary") or step["kind"],
        "nodes": step["name"],
    }


def _executable(step: Mapping[str, Any]) -> str:
    return str(step.get("executable") or step.get("kernel", ""))


def _scale(want: Array) -> float:
    """The largest magnitude, of which a tolerance is a share."""
    magnitude = np.abs(want.astype(np.float64))
    return float(magnitude[np.isfinite(magnitude)].max(initial=0.0)) or 1.0
