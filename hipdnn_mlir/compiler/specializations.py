"""A model with dynamic dimensions where code is made for exact ones: a program for each combination of buckets, in one file (adr/0016)."""

import hashlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from hipdnn_mlir_runtime.errors import DynamicDimensionError, HipdnnMlirError, ModelError, RefusedPlan, UnsupportedError
from hipdnn_mlir_runtime.expressions import Expressions, Size

from ..dynamic.buckets import BucketedSizes, combinations, computed_from
from ..dynamic.input_sizes import Buckets, InputSizes, Shapes
from ..dynamic.padding.check import check_padding
from ..dynamic.solver import RELATIONS, Solver
from ..frontend.dim_names import promised_names
from ..frontend.index_ranges import common
from ..ir.imported import Imported
from ..ops.evaluate import Array
from ..passes.pipeline import Runner
from ..program.schema import Condition, Port, ProgramModel, Specialization
from .growing_source import growing_source
from .lower import lower, lower_to_torch
from .program import Program
from .samples import at_samples
from .source import Prepared, Source, as_source

logger = logging.getLogger(__name__)


def compile_specializations(
    model: onnx.ModelProto | Source[Any],
    *,
    buckets: Buckets,
    shapes: Shapes | None = None,
    previous: Program | None = None,
    refused: Sequence[RefusedPlan] = (),
    dump_ir: str | Path | None = None,
    where: str = "model",
    external: Mapping[str, Array] | None = None,
    **options: Any,
) -> Program:
    """Compile a model for each combination of buckets.

    Args:
        model: the model; not modified.
        buckets: dynamic dimension -> rising sizes that programs are made for, for every dynamic dimension.
        shapes: as for `compile`.
        previous: the same with fewer refused graphs: what it has none of those in is taken from it.
        refused: as for `compile`.
        dump_ir: as for `compile`; a folder in it for each combination.
        where: as for `lower`.
        external: as for `lower`.
        options: `target` and `precision`, as for `compile`.

    Raises:
        HipdnnMlirError: as for `compile`; a size that must not be rounded up is no error, it takes its buckets alone.
    """
    source = as_source(model, where, external)
    sizes = source.sizes(shapes or {})
    promised = promised_names(shapes or {}, buckets)
    growing = growing_source(source, sizes, promised, promised_names(shapes or {}, {}))
    if growing is not None:
        source, sizes = growing, growing.growth.program
    elif not set(sizes.table.symbols) <= set(buckets):
        sizes = source.related(sizes, promised)
    symbols, points = sizes.table.symbols, combinations(buckets, sizes)
    kept = _without(previous, refused)
    weights, specializations = SharedWeights(), []
    elapsed_ms: Counter[str] = Counter()
    for number, point in enumerate(points):
        name = ",".join(f"{symbol}={size}" for symbol, size in zip(symbols, point, strict=True))
        program = kept.get(point)
        if program is None:
            logger.info("compiling for %s (%d of %d)", name, number + 1, len(points))
            folder = Path(dump_ir, name) if dump_ir else None
            fixed = {"shapes": sizes.at(point), "refused": refused, "dump_ir": folder, **options}
            try:
                program = lower(source, **fixed).with_weights()
            except HipdnnMlirError as error:
                error.hint = "; ".join(filter(None, (f"this was for {name}", error.hint)))
                raise
            elapsed_ms.update(program.elapsed_ms)
        specializations.append(Specialization(list(point), weights.take(program)))
    if previous is not None:
        combined = replace(previous.model, specializations=specializations)
    else:
        try:
            form = _dynamic_form(source, sizes, buckets)
        except (ModelError, UnsupportedError) as error:
            form = _static_form(sizes, specializations, error)
        form.check(specializations)
        combined = form.program(specializations, buckets)
        if growing is not None:
            combined.growing = growing.record(combined)
            combined.exact = [
                growing.exact.get(symbol, why) for symbol, why in zip(symbols, combined.exact, strict=True)
            ]
    for symbol, reason in zip(symbols, combined.exact, strict=True):
        if reason and (growing is None or symbol not in growing.exact):
            logger.warning("%r has a program for each bucket and for no other size: %s", symbol, reason)
    return Program(combined, weights.arrays, dict(elapsed_ms))


def _without(previous: Program | None, refused: Sequence[RefusedPlan]) -> dict[tuple[int, ...], Program]:
    """The specializations of a program that have none of the refused graphs in them, by their sizes."""
    if previous is None:
        return {}
    names = {plan.graph for plan in refused}
    return {
        tuple(made.sizes): Program(
            made.program, {tensor: previous.weights[tensor] for tensor in made.program.stored_tensors}
        )
        for made in previous.model.specializations
        if names.isdisjoint(executable.name for executable in made.program.executables)
    }


class SharedWeights:
    """The weights of several programs, equal ones once.

    Attributes:
        arrays: tensor -> array.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._names: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def take(self, program: Program) -> ProgramModel:
        """Add a program's weights; returns it with the names that they have here."""
        names = {tensor: self._name(tensor, array) for tensor, array in program.weights.items()}
        constants = [replace(constant, tensor=names[constant.tensor]) for constant in program.model.constants]
        return replace(program.model, constants=constants)

    def _name(self, tensor: str, array: Array) -> str:
        content = hashlib.blake2b(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, digest_size=32).digest()
        key = (str(array.dtype), array.shape, content)
        if key not in self._names:
            name, number = tensor, 1
            while name in self.arrays:
                number += 1
                name = f"{tensor}@{number}"
            self._names[key] = name
            self.arrays[name] = array
        return self._names[key]


@dataclass(frozen=True)
class _DynamicForm:
    """What a model says of its dynamic dimensions.

    Attributes:
        table: the expressions that dims and conditions are.
        inputs: with such dims.
        outputs: with such dims.
        conditions: relation, two sizes -> the node that needs it where sizes are rounded up.
        exact: size that must not be rounded up -> why.
    """

    table: Expressions
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    conditions: Mapping[tuple[str, Any, Any], str]
    exact: Mapping[str, str]

    def check(self, specializations: Sequence[Specialization]) -> None:
        """Whether the outputs have the dims that they seem to have, where the conditions hold.

        Raises:
            DynamicDimensionError: one has not.
        """
        for made in specializations:
            if not all(
                RELATIONS[relation](*(self.table.value(side, made.sizes) for side in sides))
                for relation, *sides in self.conditions
            ):
                continue  # sizes are not rounded up to these
            for port, known in zip(self.outputs, made.program.outputs, strict=True):
                if [self.table.value(size, made.sizes) for size in port.dims] != list(known.dims):
                    raise DynamicDimensionError(
                        f"dims of output {port.name!r} differ at a bucket from what the sample sizes suggest"
                    )

    def program(self, specializations: list[Specialization], buckets: Buckets) -> ProgramModel:
        """The program of these specializations."""
        first, symbols = specializations[0].program, self.table.symbols
        return ProgramModel(
            first.target,
            first.producer,
            dict(first.model),
            inputs=list(self.inputs),
            outputs=list(self.outputs),
            symbols=list(symbols),
            expressions=self.table.to_list(),
            conditions=[Condition(*condition, node) for condition, node in self.conditions.items()],
            buckets=[list(buckets[name]) for name in symbols],
            exact=[self.exact.get(name, "") for name in symbols],
            specializations=specializations,
            ranges=common([made.program.ranges for made in specializations]),
            coded=specializations[0].program.coded,
            tf32=first.tf32,
        )


def _dynamic_form(source: Source[Prepared], sizes: InputSizes, buckets: Buckets) -> _DynamicForm:
    """What becomes of dynamic dimensions, from the model at samples of them.

    That padding stays apart is a property of what a model computes, whatever for: it is followed in the form for the host.
    """

    def formed(models: Sequence[Prepared], solver: Solver) -> _DynamicForm:
        exact = {name: f"{place} is computed from it" for name, place in computed_from(buckets, sizes).items()}
        made = lower_to_torch(
            source, models, Runner(), lambda modules: exact.update(_mixing(modules, solver, buckets, exact))
        )
        inputs = [Port(info.name, info.dtype.name, sizes.inputs[info.name], -1) for info in made[0].inputs]
        columns = zip(*(imported.outputs for imported in made), strict=True)
        outputs = [Port(c[0].name, c[0].dtype.name, _dims([info.dims for info in c], solver), -1) for c in columns]
        return _DynamicForm(solver.table, inputs, outputs, dict(solver.conditions), exact)

    return at_samples(source, sizes, formed)


def _static_form(sizes: InputSizes, specializations: Sequence[Specialization], error: HipdnnMlirError) -> _DynamicForm:
    """What can be said of a model that no single program serves: each dimension accepts only the listed sizes.

    Raises:
        HipdnnMlirError: the given error, where an output has a dim that is neither fixed nor one of the sizes.
    """
    first = specializations[0].program
    known = {
        tuple(column): sizes.table.symbol(sizes.table.symbols[index])
        for index, column in enumerate(zip(*(made.sizes for made in specializations), strict=True))
    }

    def dim(column: tuple[int, ...]) -> Size:
        if len(set(column)) > 1 and column not in known:
            raise error
        return known[column] if len(set(column)) > 1 else column[0]

    outputs = []
    for index, port in enumerate(first.outputs):
        shapes = [made.program.outputs[index].dims for made in specializations]
        if len({len(shape) for shape in shapes}) > 1:
            raise error
        outputs.append(replace(port, dims=tuple(map(dim, zip(*shapes, strict=True)))))
    inputs = [replace(port, dims=sizes.inputs[port.name]) for port in first.inputs]
    exact = dict.fromkeys(sizes.table.symbols, f"no single program serves all sizes of the model: {error}")
    return _DynamicForm(sizes.table, inputs, outputs, {}, exact)


def _mixing(modules: Sequence[Imported], solver: Solver, buckets: Buckets, known: Mapping[str, str]) -> dict[str, str]:
    """Sizes that must not be rounded up, beside those that are known, and why: of two that exclude each other the first one is rounded."""
    inputs, outputs = ([info.name for info in infos] for infos in (modules[0].inputs, modules[0].outputs))
    operations = [imported.module.operation for imported in modules]
    rounded: dict[str, Sequence[int]] = {}
    found: dict[str, str] = {}
    for name in solver.table.symbols:
        if name in known:
            continue
        more = {**rounded, name: buckets[name]}
        mixing = check_padding(operations, inputs, outputs, BucketedSizes(solver, more))
        if mixing is None:
            rounded = more
        else:
            found[name] = f"padding would change results: {mixing}"
    return found


def _dims(shapes: Sequence[Sequence[int]], solver: Solver) -> tuple[Any, ...]:
    """The dims that are these at the sample points."""
    found = [
        column[0] if len(set(column)) == 1 else solver.solve(tuple(column)) for column in zip(*shapes, strict=True)
    ]
    if None in found:
        raise DynamicDimensionError("an output's dims cannot be written as expressions of the dynamic dimensions")
    return tuple(found)
