"""The compiler as one page: model -> torch dialect -> regions -> buffers -> program."""

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import onnx

from .dialect import make_context
from .dim_names import promised_names, separated
from .errors import FixedSizesError, HipdnnMlirError, ModelError, PaddingError, RefusedPlan, Reject, UnsupportedError
from .extension import load_extensions
from .importer import Imported, Slim, Weights, import_model, slim_models
from .index_ranges import Range, index_ranges
from .mlir_functions.open_sizes import check_functions, function_facts
from .model_file import read_model
from .ops.constant_plan import ConstantPlan
from .ops.evaluate import Array
from .passes.check_padding import check_padding
from .passes.evaluate_constants import plan_constants
from .passes.mark_varying import mark_varying
from .passes.offload import rejects
from .passes.pipeline import OFFLOAD_STEPS, TORCH_STEPS, Runner
from .passes.registration import body, functions
from .precision import UNCHANGED, find_precision
from .program.emit import emit
from .program.generalize import generalize
from .program.schema import ProgramModel
from .program.writer import write
from .shape_inference import DATA_DEPENDENT, SIZED_BY_DATA
from .sizes.buckets import BucketedSizes, check_buckets
from .sizes.known_sizes import check_sizes, slice_facts, tell_sizes, top_k_facts, window_facts
from .sizes.open_sizes import Buckets, InputSizes, Shapes, input_sizes
from .sizes.samples import samples_for
from .sizes.solver import Solver
from .target import Target, find_target, target_name
from .versions import producers

if TYPE_CHECKING:
    from .session import Session

logger = logging.getLogger(__name__)
ModelLike = str | Path | bytes | onnx.ModelProto
Look = Callable[[Imported, Sequence[Reject], Mapping[str, int]], None]
"""Is shown a placed model, what is left out of it, and the numbers that stand for its open sizes."""
Made = TypeVar("Made")


@dataclass(repr=False)
class Program:
    """A compiled program with its weights, ready to be saved or run.

    Attributes:
        model: everything but the weights, as in the file.
        weights: constant name -> array.
        elapsed_ms: compile time per step.
        compile_without: compiles the model again, without graphs that the device's library refuses; sessions ask for it.
    """

    model: ProgramModel
    weights: Weights
    elapsed_ms: dict[str, float] = field(default_factory=dict)
    compile_without: Callable[[Sequence[RefusedPlan]], "Program"] | None = None

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
        name, steps = self.model.model["name"], f"{len(self.model.steps)} steps"
        if self.model.instances:
            steps = f"{len(self.model.instances)} combinations of buckets"
        return f"Program({name!r} for {self.model.target!r}, inputs {inputs}, {steps}, {weight_bytes} bytes of weights)"

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
    precision: str = UNCHANGED,
    shapes: Shapes | None = None,
    buckets: Buckets | None = None,
    refused: Iterable[RefusedPlan] = (),
    dump_ir: str | Path | None = None,
) -> Program:
    """Compile an ONNX model into a hipDNN program, in this process.

    Args:
        model: path, serialized bytes or loaded model.
        target: whose engines to compile for.
        precision: `model`, or `f16` or `bf16`: what an f32 model runs in where the op table allows it; inputs and outputs keep their types.
            Or `tf32`: as the model is, but products of f32 may round their operands to TF32 where the device has that.
        shapes: sizes that the model leaves open, or other sizes than it states: input name -> dims, each a number, the name of an open size
            or `"?"`; or the name of an open size -> a number or another name. What stays open is a symbol of the program.
        buckets: open size -> rising sizes that it is rounded up to when the program runs: inputs are padded, outputs cut back, and the
            program is loaded for these sizes alone. For GPUs every open size needs some: code is made for each combination of them, and a
            size that must not be rounded up takes its buckets alone.
        refused: graphs that the library of the device at hand has refused: they are split, then left to kernels of the compiler's own.
        dump_ir: folder for the IR after each step, `NN-<step>.mlir`.

    Raises:
        ModelError: missing or broken model; unknown target, precision, input or size; sizes that do not fit the model.
        PaddingError: the model mixes elements along a size with buckets, so that padding would change what it computes.
        UnsupportedError: operations outside every engine, all of them listed.
        PassError: a defect of this compiler.
    """
    options = {"target": target, "precision": precision, "shapes": shapes, "buckets": buckets}
    return _compiled(model, list(refused), None, dump_ir=dump_ir, **options)


def _compiled(
    model: ModelLike,
    refused: Sequence[RefusedPlan],
    previous: Program | None,
    *,
    dump_ir: str | Path | None = None,
    **options: Any,
) -> Program:
    """Compile a model; of a program with instances those that nothing is refused of are taken from the previous one."""
    file = read_model(model)
    make = partial(_compile_instances, previous) if options["buckets"] and has_code(options["target"]) else _compile
    program = make(file.proto, refused=refused, dump_ir=dump_ir, where=_where(model), external=file.external, **options)
    program.model.model["sha256"] = file.sha256
    program.compile_without = lambda more: _compiled(model, [*refused, *more], program, **options)
    return program


def _compile(proto: onnx.ModelProto, **options: Any) -> Program:
    return lower(proto, **options).with_weights()


def _compile_instances(previous: Program | None, proto: onnx.ModelProto, **options: Any) -> Program:
    from .instances import compile_instances

    return compile_instances(proto, previous=previous, **options)


def has_code(target: str) -> bool:
    """Whether programs for a target hold code, which is made for exact sizes."""
    return find_target(target).architecture is not None


@dataclass(frozen=True)
class Lowered:
    """A model compiled as far as the values of its weights do not matter; that it exists is the proof that the model compiles.

    Attributes:
        model: the program without its weights.
        weights: constant name -> array, as the importer gave them.
        constants: the arithmetic on weights.
        graphs: hipDNN graphs that the target's engines have taken.
        elapsed_ms: compile time per step.
        sample: of a program with open sizes the instance at one of the sample points, else the program.
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


def lower(
    proto: onnx.ModelProto,
    *,
    target: str = "host",
    precision: str = UNCHANGED,
    shapes: Shapes | None = None,
    buckets: Buckets | None = None,
    refused: Sequence[RefusedPlan] = (),
    dump_ir: str | Path | None = None,
    where: str = "model",
    external: Mapping[str, Array] | None = None,
    look: Look | None = None,
) -> Lowered:
    """Compile a model up to the values of its weights.

    Args:
        proto: the model; not modified.
        target: as for `compile`.
        precision: as for `compile`.
        shapes: as for `compile`.
        buckets: as for `compile`.
        refused: as for `compile`.
        dump_ir: as for `compile`; of a model with open sizes the IR at the first sample point.
        where: the model's file, for messages.
        external: arrays of the initializers whose data is outside the model, or stand-ins of the same dims and dtype.
        look: is shown the model once it is placed; of one with open sizes for each set of sample points, at the first of them.

    Raises:
        HipdnnMlirError: as for `compile`.
    """
    load_extensions()
    find_precision(precision)
    find_target(target)
    library = find_target(target_name(target, precision))
    sizes = input_sizes(proto, shapes or {}, where)
    rounded = buckets or {}
    check_buckets(rounded, sizes)
    dump = Path(dump_ir) if dump_ir else None
    if sizes.is_static:
        names = [plan.graph for plan in refused]
        runner = Runner(target=target, precision=precision, refused=names, dump_ir=dump)
        return _lower(
            slim_models(proto, [sizes.at(())], where, external), runner, library, None, refused=refused, look=look
        )

    def lowered(slims: Sequence[Slim], solver: Solver) -> Lowered:
        runner = Runner(target=target, precision=precision, dump_ir=dump)
        return _lower(slims, runner, library, solver, rounded, look=look)

    own = separated(proto, sizes, promised_names(shapes or {}, rounded), where, external)
    try:
        return at_samples(proto, own, lowered, where, external)
    except (ModelError, UnsupportedError):
        if own is sizes:
            raise
    return at_samples(proto, sizes, lowered, where, external)  # operators beyond onnx's inference may want them equal


def at_samples(
    proto: onnx.ModelProto,
    sizes: InputSizes,
    use: Callable[[Sequence[Slim], Solver], Made],
    where: str = "model",
    external: Mapping[str, Array] | None = None,
) -> Made:
    """Use a model with open sizes at the first set of sample sizes that it accepts.

    Args:
        proto: the model.
        sizes: its inputs, some of them open.
        use: is given the model at each point of a set, and a solver with what its nodes say of its sizes.
        where: as for `lower`.
        external: as for `lower`.

    Raises:
        HipdnnMlirError: no set does; the error of the first.
    """
    failure: HipdnnMlirError | None = None
    for chosen in samples_for(proto, sizes):
        try:
            slims = slim_models(proto, [sizes.at(point) for point in chosen.points], where, external)
            solver = _solved(slims, Solver(sizes.table, chosen.points))
            (other,) = slim_models(proto, [sizes.at(chosen.held_out)], where, external)
            models = [slim.model for slim in slims]
            check_sizes(models, other.model, chosen.held_out, solver)
            check_functions(models, other.model, chosen.held_out, solver)
            return use(slims, solver)
        except (ModelError, UnsupportedError) as error:
            told = sizes.meaning(_point_of(error, chosen.points))
            if not _is_of_sizes(error):
                error.hint = "; ".join(filter(None, (told, error.hint)))
                raise
            if not _is_of_data(error):
                told = told or sizes.meaning(chosen.points[0])
                error.hint = f"{told}; give sizes that are fixed or equal with --shape"
            failure = failure or error
    assert failure is not None
    raise failure


def _solved(slims: Sequence[Slim], solver: Solver) -> Solver:
    """The solver with what the model's nodes say of its sizes."""
    models = [slim.model for slim in slims]
    solver.learn(slims[0].facts)
    tell_sizes(models, solver)
    solver.learn(window_facts(models))
    solver.learn(slice_facts(models))
    solver.learn(top_k_facts(models))
    solver.learn(function_facts(models))
    return solver


def _point_of(error: HipdnnMlirError, points: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The sample point whose numbers an error speaks of; empty where it speaks of none."""
    numbers = set(map(int, re.findall(r"\b\d{1,18}\b", error.message)))
    return next((point for point in points if numbers & set(point)), ())


def _is_of_sizes(error: HipdnnMlirError) -> bool:
    """Whether a model that fails at one set of sample sizes may do at another."""
    if isinstance(error, (PaddingError, FixedSizesError)):
        return False
    if isinstance(error, UnsupportedError):
        return all(reject.rule == DATA_DEPENDENT for reject in error.rejects)
    return True


def _is_of_data(error: HipdnnMlirError) -> bool:
    """Whether fixed sizes would not mend it."""
    return isinstance(error, UnsupportedError) and any(reject.reason == SIZED_BY_DATA for reject in error.rejects)


def _lower(
    slims: Sequence[Slim],
    runner: Runner,
    library: Target,
    solver: Solver | None,
    buckets: Buckets | None = None,
    refused: Sequence[RefusedPlan] = (),
    look: Look | None = None,
) -> Lowered:
    """From models with static sizes to a program: theirs, or the one of which theirs are instances."""
    padding = BucketedSizes(solver, buckets) if solver and buckets else None
    refusals: list[PaddingError | None] = []
    imported = lower_to_torch(slims, runner, lambda made: refusals.append(_check_padding(made, runner, padding)))
    samples = dict(zip(solver.table.symbols, solver.points[0], strict=True)) if solver else {}
    watch = (lambda left: look(imported[0], left, samples)) if look else None
    parts = [_lower_torch(imported[0], runner, library, refused, watch)]
    if solver is not None and any(kernel.code is not None for kernel in parts[0].model.kernels):
        name = solver.table.symbols[0]
        raise FixedSizesError(
            f"code for {library.name} is made for exact sizes, and the model leaves {', '.join(solver.table.symbols)} open",
            hint=f"name the sizes to make it for with --bucket {name}=1,8,32, or fix one with --shape {name}=1",
        )
    parts += [_lower_torch(sample, runner.sibling(), library, refused) for sample in imported[1:]]
    for refusal in filter(None, refusals):  # behind the parts: what cannot be compiled at all is the better message
        raise refusal
    if solver is None:
        parts[0].model.ranges = _ranges(slims, imported[0])
        return parts[0]
    start = time.perf_counter()
    literals = [part.constants.stored_literals() for part in parts]
    program = generalize([part.model for part in parts], solver, _differing(literals))
    program.ranges = _ranges(slims, imported[0])
    program.buckets = [list((buckets or {}).get(name, ())) for name in program.symbols]
    runner.elapsed_ms["generalize"] = (time.perf_counter() - start) * 1e3
    return replace(parts[0], model=program)


def _ranges(slims: Sequence[Slim], imported: Imported) -> dict[str, Range]:
    return index_ranges([slim.model for slim in slims], [info.name for info in imported.inputs])


def _differing(constants: Sequence[Mapping[str, Array]]) -> list[dict[str, Array]]:
    """Per sample point the constants that are not the same at all of them."""
    first = constants[0]
    names = [
        name
        for name in first
        if not all(np.array_equal(first[name], other[name], equal_nan=True) for other in constants)
    ]
    return [{name: arrays[name] for name in names} for arrays in constants]


def _lower_torch(
    imported: Imported,
    runner: Runner,
    target: Target,
    refused: Sequence[RefusedPlan],
    look: Callable[[Sequence[Reject]], None] | None = None,
) -> Lowered:
    """From the torch dialect to a program for the sizes that the module has."""
    with imported.module.context:
        module = imported.module.operation
        constants = plan_constants(module)
        runner.run(module, OFFLOAD_STEPS[:1])
        left = rejects(module, target)
        if look is not None:
            look(left)
        if left:
            raise UnsupportedError(left, target=target.name)
        graphs = sum(op.name == "hipdnn.graph" for function in functions(module) for op in body(function))
        runner.run(module, OFFLOAD_STEPS[1:])
        start = time.perf_counter()
        program = emit(imported, target.name, producers(), refused)
        program.tf32 = runner.allows_tf32
        runner.elapsed_ms["emit"] = (time.perf_counter() - start) * 1e3
    return Lowered(program, imported.weights, constants, graphs, runner.elapsed_ms, program)


def lower_to_torch(
    slims: Sequence[Slim], runner: Runner, look: Callable[[Sequence[Imported]], None] | None = None
) -> list[Imported]:
    """Import a model and run the torch-dialect steps.

    Args:
        slims: the model at one or more sizes of its inputs.
        runner: for the first of them; it keeps the times.
        look: is shown the modules while the arithmetic on their weights is still in them.
    """
    start = time.perf_counter()
    context = make_context()
    runner.elapsed_ms["context"] = (time.perf_counter() - start) * 1e3
    runners = [runner, *(runner.sibling() for _ in slims[1:])]
    made = [import_model(slim, context, each) for slim, each in zip(slims, runners, strict=True)]
    with context:
        modules = [imported.module.operation for imported in made]
        for module, each in zip(modules, runners, strict=True):
            each.run(module, TORCH_STEPS[1:-1])
        mark_varying(modules)
        if look is not None:
            look(made)
        for module, each in zip(modules, runners, strict=True):
            each.run(module, TORCH_STEPS[-1:])
    return made


def _check_padding(made: Sequence[Imported], runner: Runner, padding: BucketedSizes | None) -> PaddingError | None:
    """Why sizes with buckets must not be rounded up, if so."""
    if padding is None:
        return None
    start = time.perf_counter()
    inputs, outputs = ([info.name for info in infos] for infos in (made[0].inputs, made[0].outputs))
    mixing = check_padding([imported.module.operation for imported in made], inputs, outputs, padding)
    runner.elapsed_ms["check-padding"] = (time.perf_counter() - start) * 1e3
    return mixing.error() if mixing else None


def _where(model: ModelLike) -> str:
    return str(model) if isinstance(model, (str, Path)) else "model"
