"""What the compiler returns: a program with its weights, and one whose weights are still to come."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from hipdnn_mlir_runtime.errors import RefusedPlan
from hipdnn_mlir_runtime.expressions import Size
from hipdnn_mlir_runtime.session.options import SessionOptions
from hipdnn_mlir_runtime.session.session import Session

from ..ir.imported import Weights
from ..ops.constant_plan import ConstantPlan
from ..ops.evaluate import Array
from ..program.file import write
from ..program.schema import ProgramModel

if TYPE_CHECKING:
    from hipdnn_mlir_runtime.torch import Calling


@dataclass(repr=False)
class Program:
    """A compiled program with its weights, ready to be saved or run.

    Attributes:
        model: everything but the weights, as in the file.
        weights: constant name -> array.
        elapsed_ms: compile time per step.
        calling: of a PyTorch module: how its arguments and results are nested.
        compile_without: compiles the model again, without graphs that the device's library refuses; sessions ask for it.
    """

    model: ProgramModel
    weights: Weights
    elapsed_ms: dict[str, float] = field(default_factory=dict)
    compile_without: Callable[[Sequence[RefusedPlan]], "Program"] | None = None
    calling: "Calling | None" = None

    def save(self, path: str | Path) -> None:
        """Write `model.hipdnn`; the file appears complete or not at all."""
        write(Path(path), self.model, self.weights)

    def session(self, **options: Unpack[SessionOptions]) -> Session:
        """Load the program into the runtime; options as for `hipdnn_mlir.load`."""
        return Session(self, **options)

    def __repr__(self) -> str:
        """One line: model, target, inputs, steps, bytes of weights."""
        inputs = ", ".join(
            f"{port.name}: {port.dtype}[{','.join(map(self._dim, port.dims))}]" for port in self.model.inputs
        )
        weight_bytes = sum(array.nbytes for array in self.weights.values())
        name, steps = self.model.model["name"], f"{len(self.model.steps)} steps"
        if self.model.specializations:
            steps = f"{len(self.model.specializations)} combinations of buckets"
        return f"Program({name!r} for {self.model.target!r}, inputs {inputs}, {steps}, {weight_bytes} bytes of weights)"

    def _dim(self, dim: Size) -> str:
        """A dim as a number or the name of its size; `...` for one that is computed from others."""
        if isinstance(dim, int):
            return str(dim)
        kind, *operands = self.model.expressions[dim.index]
        return self.model.symbols[operands[0]] if kind == "symbol" else "..."

    @property
    def text(self) -> str:
        """The program object as JSON, as the runtime reads it."""
        return json.dumps(self.model.to_dict(), separators=(",", ":"))

    @property
    def tensors(self) -> Weights:
        """Constants by name."""
        return self.weights


@dataclass(frozen=True)
class Lowered:
    """A model compiled as far as the values of its weights do not matter; that it exists is the proof that the model compiles.

    Attributes:
        model: the program without its weights.
        weights: constant name -> array, as the importer gave them.
        constants: the arithmetic on weights.
        graphs: hipDNN graphs that the target's engines have taken.
        elapsed_ms: compile time per step.
        sample: of a program with dynamic dimensions the program for one of the sample points, else the program itself.
    """

    model: ProgramModel
    weights: Weights
    constants: ConstantPlan
    graphs: int
    elapsed_ms: dict[str, float]
    sample: ProgramModel

    def with_weights(self, external: Mapping[str, Array] | None = None) -> Program:
        """The program with its weights.

        Args:
            external: arrays of the initializers whose data is outside the model.

        Raises:
            PassError: a constant cannot be evaluated, which is a defect.
        """
        start = time.perf_counter()
        weights = self.constants.evaluate(self.weights | dict(external or {}))
        elapsed_ms = {**self.elapsed_ms, "evaluate-constants": (time.perf_counter() - start) * 1e3}
        used = {constant.tensor for constant in self.model.constants if constant.values is None}
        return Program(self.model, {name: weights[name] for name in used}, elapsed_ms)
