"""The compiler as one page: model -> torch dialect -> regions -> buffers -> program."""

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from .dialect import make_context
from .errors import UnsupportedError
from .importer import Imported, Weights, import_model, read_model
from .ops.evaluate import Array
from .ops.strides import Dims
from .passes.evaluate_constants import ConstantPlan, plan_constants
from .passes.offload import rejects
from .passes.pipeline import OFFLOAD_STEPS, TORCH_STEPS, Runner
from .passes.registration import body, functions
from .program.emit import emit
from .program.schema import ProgramModel
from .program.writer import write
from .target import find_target
from .versions import producers

if TYPE_CHECKING:
    from .session import Session

logger = logging.getLogger(__name__)
ModelLike = str | Path | bytes | onnx.ModelProto


@dataclass(repr=False)
class Program:
    """A compiled program with its weights, ready to be saved or run.

    Attributes:
        model: everything but the weights, as in the file.
        weights: constant name -> array.
        elapsed_ms: compile time per step.
    """

    model: ProgramModel
    weights: Weights
    elapsed_ms: dict[str, float] = field(default_factory=dict)

    def save(self, path: str | Path) -> None:
        """Write `model.hipdnn`; the file appears complete or not at all."""
        write(Path(path), self.model, self.weights)

    def session(self, **options: Any) -> "Session":
        """Load the program into the runtime; options as for `hipdnn_mlir.load`."""
        from .session import Session

        return Session(self, **options)

    def __repr__(self) -> str:
        """One line: model, target, inputs, steps, bytes of weights."""
        inputs = ", ".join(f"{port.name}: {port.dtype}{list(port.dims)}" for port in self.model.inputs)
        weight_bytes = sum(array.nbytes for array in self.weights.values())
        name, steps = self.model.model["name"], len(self.model.steps)
        return f"Program({name!r} for {self.model.target!r}, inputs {inputs}, {steps} steps, {weight_bytes} bytes of weights)"

    @property
    def text(self) -> str:
        """The program object as JSON, as the runtime reads it."""
        return json.dumps(self.model.to_dict(), separators=(",", ":"))

    @property
    def tensors(self) -> Weights:
        """Constants by name."""
        return self.weights


def compile(  # noqa: A001 - the public name
    model: ModelLike,
    *,
    target: str = "host",
    shapes: Mapping[str, Dims] | None = None,
    dump_ir: str | Path | None = None,
) -> Program:
    """Compile an ONNX model into a hipDNN program, in this process.

    Args:
        model: path, serialized bytes or loaded model.
        target: whose engines to compile for.
        shapes: input name -> dims, for inputs that the model leaves dynamic.
        dump_ir: folder for the IR after each step, `NN-<step>.mlir`.

    Raises:
        ModelError: missing, broken or dynamic model; unknown target or input name.
        UnsupportedError: operations outside every engine, all of them listed.
        PassError: a defect of this compiler.
    """
    proto, digest = read_model(model)
    lowered = lower(proto, target=target, shapes=shapes, dump_ir=dump_ir, where=_where(model))
    lowered.model.model["sha256"] = digest
    return lowered.with_weights()


@dataclass(frozen=True)
class Lowered:
    """A model compiled as far as the values of its weights do not matter; that it exists is the proof that the model compiles.

    Attributes:
        model: the program without its weights.
        weights: constant name -> array, as the importer gave them.
        constants: the arithmetic on weights.
        graphs: hipDNN graphs that the target's engines have taken.
        elapsed_ms: compile time per step.
    """

    model: ProgramModel
    weights: Weights
    constants: ConstantPlan
    graphs: int
    elapsed_ms: dict[str, float]

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
        used = {constant.tensor for constant in self.model.constants}
        return Program(self.model, {name: weights[name] for name in used}, elapsed_ms)


def lower(
    proto: onnx.ModelProto,
    *,
    target: str = "host",
    shapes: Mapping[str, Dims] | None = None,
    dump_ir: str | Path | None = None,
    where: str = "model",
    external: Mapping[str, Array] | None = None,
) -> Lowered:
    """Compile a model up to the values of its weights.

    Args:
        proto: the model; not modified.
        target: as for `compile`.
        shapes: as for `compile`.
        dump_ir: as for `compile`.
        where: the model's file, for messages.
        external: arrays of the initializers whose data is outside the model, or stand-ins of the same dims and dtype.

    Raises:
        HipdnnMlirError: as for `compile`.
    """
    library = find_target(target)
    runner = Runner(target=target, dump_ir=Path(dump_ir) if dump_ir else None)
    imported = lower_to_torch(proto, runner, shapes, where, external)
    with imported.module.context:
        module = imported.module.operation
        constants = plan_constants(module)
        runner.run(module, OFFLOAD_STEPS[:1])
        left = rejects(module, library)
        if left:
            raise UnsupportedError(left, target=target)
        graphs = sum(op.name == "hipdnn.graph" for function in functions(module) for op in body(function))
        runner.run(module, OFFLOAD_STEPS[1:])
        start = time.perf_counter()
        program = emit(imported, target, producers())
        runner.elapsed_ms["emit"] = (time.perf_counter() - start) * 1e3
    return Lowered(program, imported.weights, constants, graphs, runner.elapsed_ms)


def lower_to_torch(
    proto: onnx.ModelProto,
    runner: Runner,
    shapes: Mapping[str, Dims] | None,
    where: str,
    external: Mapping[str, Array] | None = None,
) -> Imported:
    """Import a model and run the torch-dialect steps."""
    start = time.perf_counter()
    context = make_context()
    runner.elapsed_ms["context"] = (time.perf_counter() - start) * 1e3
    imported = import_model(proto, context, runner, shapes, where, external)
    with context:
        runner.run(imported.module.operation, TORCH_STEPS[1:])
    return imported


def _where(model: ModelLike) -> str:
    return str(model) if isinstance(model, (str, Path)) else "model"
