"""Lowers a model: torch dialect -> regions -> buffers -> program, up to the values of its weights."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from hipdnn_mlir_runtime.errors import (
    ModelError,
    PaddingError,
    RefusedPlan,
    Reject,
    StaticDimensionsError,
    UnsupportedError,
)
from hipdnn_mlir_runtime.expressions import Size
from hipdnn_mlir_runtime.precision import UNCHANGED, find_precision

from ..dynamic.buckets import BucketedSizes, check_buckets
from ..dynamic.each_sample import each_sample
from ..dynamic.generalize import generalize
from ..dynamic.input_sizes import Buckets, InputSizes, Shapes
from ..dynamic.padding.check import check_padding
from ..dynamic.padding.zeros import filled_sizes
from ..dynamic.solver import Solver
from ..dynamic.varying import mark_varying
from ..extension import load_extensions
from ..frontend.dim_names import promised_names
from ..frontend.shape_inference import SizesContradictError
from ..ir.blocks import functions, operations
from ..ir.claims import rejects
from ..ir.constants import plan_constants
from ..ir.dialect import GraphOp, make_context
from ..ir.imported import Imported
from ..ops.evaluate import Array
from ..passes.pipeline import OFFLOAD_STEPS, TORCH_STEPS, Runner
from ..program.emit import emit
from ..targets.table import find_target, target_name
from ..targets.target import Target
from ..versions import producers
from .growing_source import growing_source
from .program import Lowered
from .samples import at_samples
from .source import Prepared, Source, as_source

logger = logging.getLogger(__name__)
Look = Callable[[Imported, Sequence[Reject], Mapping[str, int]], None]
"""Is shown a placed model, what is left out of it, and the numbers that stand for its dynamic dimensions."""


def lower(
    model: onnx.ModelProto | Source[Any],
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
        model: the model; not modified.
        target: as for `compile`.
        precision: as for `compile`.
        shapes: as for `compile`.
        buckets: as for `compile`.
        refused: as for `compile`.
        dump_ir: as for `compile`; of a model with dynamic dimensions the IR at the first sample point.
        where: the model's file, for messages.
        external: arrays of the initializers whose data is outside the model, or stand-ins of the same dims and dtype.
        look: is shown the model once it is placed; of one with dynamic dimensions for each set of sample points, at the first of them.

    Raises:
        HipdnnMlirError: as for `compile`.
    """
    load_extensions()
    find_precision(precision)
    find_target(target)
    library = find_target(target_name(target, precision))
    source = as_source(model, where, external)
    sizes = source.sizes(shapes or {})
    rounded = buckets or {}
    check_buckets(rounded, sizes)
    dump = Path(dump_ir) if dump_ir else None
    promised = promised_names(shapes or {}, rounded)

    def static(sizes: InputSizes) -> Lowered:
        names = [plan.graph for plan in refused]
        runner = Runner(target=target, precision=precision, refused=names, dump_ir=dump)
        return _lower(source, source.at([sizes.at(())]), runner, library, None, refused=refused, look=look)

    def lowered(models: Sequence[Any], solver: Solver) -> Lowered:
        runner = Runner(target=target, precision=precision, dump_ir=dump)
        return _lower(source, models, runner, library, solver, rounded, look=look)

    if sizes.is_static:
        return static(sizes)
    kept = promised if library.architecture is None else promised_names(shapes or {}, {})
    growing = growing_source(source, sizes, promised, kept)
    if growing is not None:
        made = at_samples(growing, growing.growth.program, lowered)
        made.model.growing = growing.record(made.model)
        return made
    try:
        return _at_own_sizes(source, sizes, promised, lowered)
    except SizesContradictError:
        fewer = source.related(sizes, promised)
        if fewer is sizes:
            raise
    return static(fewer) if fewer.is_static else _at_own_sizes(source, fewer, promised, lowered)


def _at_own_sizes(
    source: Source[Prepared],
    sizes: InputSizes,
    promised: set[str],
    lowered: Callable[[Sequence[Prepared], Solver], Lowered],
) -> Lowered:
    """The model at sample sizes, different ones for dims that share a name where the model takes that."""
    own = source.separated(sizes, promised)
    try:
        return at_samples(source, own, lowered)
    except (ModelError, UnsupportedError):
        if own is sizes:
            raise
    return at_samples(source, sizes, lowered)  # operators beyond onnx's inference may want them equal


def _lower(
    source: Source[Prepared],
    models: Sequence[Prepared],
    runner: Runner,
    library: Target,
    solver: Solver | None,
    buckets: Buckets | None = None,
    refused: Sequence[RefusedPlan] = (),
    look: Look | None = None,
) -> Lowered:
    """From models with static sizes to a program: theirs, or the one that is theirs at their sizes."""
    padding = BucketedSizes(solver, buckets) if solver and buckets else None
    refusals: list[PaddingError | None] = []
    filled: list[Size] = []

    def look_at_sizes(made: Sequence[Imported]) -> None:
        refusals.append(_check_padding(made, runner, padding))
        if solver is not None and library.architecture is None:
            filled.extend(_filled(made, runner, solver))

    imported = lower_to_torch(source, models, runner, look_at_sizes)
    samples = dict(zip(solver.table.symbols, solver.points[0], strict=True)) if solver else {}
    watch = (lambda left: look(imported[0], left, samples)) if look else None
    parts = [_lower_torch(imported[0], runner, library, refused, watch)]
    if solver is not None and any(kernel.code is not None for kernel in parts[0].model.kernels):
        name, names = solver.table.symbols[0], ", ".join(solver.table.symbols)
        raise StaticDimensionsError(
            f"code for {library.name} is made for exact sizes, but these dimensions of the model are dynamic: {names}",
            hint=f"list the sizes to compile for with --bucket {name}=1,8,32, or make it static with --shape {name}=1",
        )
    parts += [_lower_torch(sample, runner.sibling(), library, refused) for sample in imported[1:]]
    for refusal in filter(None, refusals):  # behind the parts: what cannot be compiled at all is the better message
        raise refusal
    if solver is None:
        parts[0].model.ranges = source.ranges(models, imported[0])
        parts[0].model.sizing = source.sizing(models[0])
        return parts[0]
    start = time.perf_counter()
    literals = [part.constants.stored_literals() for part in parts]
    program = generalize([part.model for part in parts], solver, _differing(literals))
    program.ranges = source.ranges(models, imported[0])
    program.filled = filled
    program.coded = parts[0].model.coded
    if buckets:
        program.buckets = [list(buckets.get(name, ())) for name in program.symbols]
    runner.elapsed_ms["generalize"] = (time.perf_counter() - start) * 1e3
    return replace(parts[0], model=program)


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
        graphs = sum(isinstance(op, GraphOp) for function in functions(module) for op in operations(function))
        runner.run(module, OFFLOAD_STEPS[1:])
        start = time.perf_counter()
        program = emit(imported, target.name, producers(), refused)
        program.tf32 = runner.allows_tf32
        runner.elapsed_ms["emit"] = (time.perf_counter() - start) * 1e3
    return Lowered(program, imported.weights, constants, graphs, runner.elapsed_ms, program)


def lower_to_torch(
    source: Source[Prepared],
    models: Sequence[Prepared],
    runner: Runner,
    look: Callable[[Sequence[Imported]], None] | None = None,
) -> list[Imported]:
    """Import a model and run the torch-dialect steps.

    Args:
        source: the model.
        models: the model at one or more sizes of its inputs.
        runner: for the first of them; it keeps the times.
        look: is shown the modules while the arithmetic on their weights is still in them.
    """
    start = time.perf_counter()
    context = make_context()
    runner.elapsed_ms["context"] = (time.perf_counter() - start) * 1e3
    runners = [runner, *(runner.sibling() for _ in models[1:])]
    made = each_sample(lambda pair: source.convert(pair[0], context, pair[1]), list(zip(models, runners, strict=True)))
    with context:
        modules = [imported.module.operation for imported in made]
        each_sample(lambda pair: pair[1].run(pair[0], TORCH_STEPS[1:-1]), list(zip(modules, runners, strict=True)))
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


def _filled(made: Sequence[Imported], runner: Runner, solver: Solver) -> list[Size]:
    """Per symbol the size up to which inputs may be filled with zeros; empty where no input may."""
    start = time.perf_counter()
    modules, outputs = [imported.module.operation for imported in made], [info.name for info in made[0].outputs]
    sizes = filled_sizes(modules, len(made[0].inputs), outputs, solver)
    runner.elapsed_ms["fill-inputs"] = (time.perf_counter() - start) * 1e3
    return [] if sizes == [solver.table.symbol(name) for name in solver.table.symbols] else sizes
