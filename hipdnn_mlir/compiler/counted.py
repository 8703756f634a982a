"""Models whose data decides how many rows they return: computed at the largest size, and cut behind the run (adr/0054)."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import onnx

from hipdnn_mlir_runtime.errors import HipdnnMlirError, Reject, UnsupportedError
from hipdnn_mlir_runtime.expressions import Ref

from ..dynamic.buckets import BucketedSizes
from ..dynamic.input_sizes import InputSizes, Shapes
from ..dynamic.padding.check import check_padding
from ..dynamic.solver import Solver
from ..frontend.counted.model import Counted, Rows, counted
from ..frontend.counted.pieces import Piece
from ..frontend.counted.sizes import Dim, Times, Unfollowed
from ..frontend.prepare import Slim, with_shapes
from ..frontend.shape_inference import DATA_DEPENDENT
from ..frontend.sizes.samples import Samples
from ..ir.imported import Imported
from ..passes.pipeline import Runner
from ..program.schema import ProgramModel
from .lower import lower_to_torch
from .samples import at_samples
from .source import OnnxSource, Source

Dims = dict[str, list[Times | None]]
"""Output -> per dim how many of it count, None where all do."""
MAX_LISTS = 8
"""Numbers of rows in one piece: each is a dynamic dimension of it."""


class Compiled(Protocol):
    """A program, with or without its weights."""

    @property
    def model(self) -> ProgramModel:
        """What the file says."""


Made = TypeVar("Made", bound=Compiled)


def at_bounds(make: Callable[..., Made], source: Source[Any], **options: Any) -> Made:
    """Make a program of a model; where data decides how many rows the model returns, of the most there can be.

    Args:
        make: compiles a source with the options.
        source: the model.
        options: among them `shapes`, as for `lower`.

    Raises:
        HipdnnMlirError: as `make` does.
    """
    try:
        return make(source, **options)
    except UnsupportedError as error:
        if not isinstance(source, OnnxSource):
            raise
        model, shapes = source.proto, options.get("shapes") or {}
        sizes = source.sizes(shapes)
        if sizes.is_static:
            model, shapes = with_shapes(model, sizes.at(())), {}
        found = _counted(model, sizes.table.symbols, error)
        if found is None:
            raise
        where, external = source.where, source.external
        dims = {n: [dim if isinstance(dim, Times) else None for dim in each or ()] for n, each in found.outputs.items()}
        for piece in found.pieces:
            dims.update(_checked(piece, _Behind(piece.model, where, external), shapes, found, error))
        cuts = {name: [str(dim or "") for dim in dims[name]] for name in found.outputs}
        numbers = dict.fromkeys(dim for name in cuts for dim in dims[name] if dim is not None)
        bounded = found.bounded(model, numbers)
        made = make(OnnxSource(bounded, where, external), **{**options, "shapes": shapes})
        made.model.counted = {str(dim): [] for dim in numbers} | {
            name: each for name, each in cuts.items() if any(each)
        }
        return made


class _Behind(OnnxSource):
    """What is behind the rows, looked at for one set of sample sizes: what fails there is refused."""

    def samples(self, sizes: InputSizes, beyond: int = 0) -> Iterator[Samples]:
        """The first of the model's."""
        yield next(super().samples(sizes, beyond))


def _counted(model: onnx.ModelProto, symbols: Collection[str], error: UnsupportedError) -> Counted | None:
    try:
        return counted(model, symbols)
    except onnx.shape_inference.InferenceError:
        return None
    except Unfollowed as reason:
        reject = Reject(reason.operator, DATA_DEPENDENT, str(reason), reason.node)
        raise UnsupportedError([reject], target=error.target, where=error.where) from reason


def _checked(piece: Piece, behind: OnnxSource, shapes: Shapes, made: Counted, error: UnsupportedError) -> Dims:
    """The dims of a piece's outputs that are numbers of rows.

    Raises:
        UnsupportedError: rows behind those that count would reach a result.
    """
    found: Dims = {}
    reasons: list[tuple[str, str | None]] = []
    names = {key: [1] for key in piece.symbols}  # any bucket: what counts is which sizes have some
    first = next(iter(made.rows.values()))
    if len(names) > MAX_LISTS:
        raise _refused(first, error, f"{len(names)} numbers of rows meet, more than {MAX_LISTS}")

    def look(models: Sequence[Slim], solver: Solver) -> None:
        padding = BucketedSizes(solver, names)

        def check(imported: Sequence[Imported]) -> None:
            inputs, outputs = ([info.name for info in infos] for infos in (imported[0].inputs, imported[0].outputs))
            mixing = check_padding([each.module.operation for each in imported], inputs, outputs, padding)
            if mixing is not None:
                reasons.append((str(mixing), mixing.symbol))
            dims, computed = _counted_dims(imported, piece, solver, padding)
            found.update(dims)
            reasons.extend((reason, None) for reason in computed)

        lower_to_torch(behind, models, Runner(), check)
        for (_, *sides), node in solver.conditions.items():
            if any(not names.keys().isdisjoint(solver.table.names(side)) for side in sides if isinstance(side, Ref)):
                reasons.append((f"node {node!r} takes another path for some sizes", None))

    try:
        at_samples(behind, behind.sizes(shapes), look)
    except UnsupportedError:  # rows or not, something has no place
        raise error from None
    except HipdnnMlirError as other:
        raise _refused(first, error, str(other)) from other
    if reasons:
        reason, symbol = reasons[0]
        dim = piece.symbols.get(symbol or "")
        rows = made.rows[dim.name] if dim is not None else first
        raise _refused(rows, error, reason)
    return found


def _counted_dims(
    imported: Sequence[Imported], piece: Piece, solver: Solver, padding: BucketedSizes
) -> tuple[Dims, list[str]]:
    """The dims of the outputs that are numbers of rows, and why others must not be computed from such."""
    made: Dims = {}
    reasons = []
    for infos in zip(*(each.outputs for each in imported), strict=True):
        name = infos[0].name
        columns = list(zip(*(info.dims for info in infos), strict=True))
        expected = piece.outputs[name] or [None] * len(columns)
        made[name] = []
        for axis, (column, dim) in enumerate(zip(columns, expected, strict=True)):
            symbol = padding.symbol_of(column)
            rows = piece.symbols[symbol] if symbol else _times(column, dim, solver)
            made[name].append(rows)
            if (rows is None and padding.symbol_in(column)) or (isinstance(dim, Times) and rows != dim):
                reasons.append(f"dimension {axis} of output {name!r} is computed from it")
    return made, reasons


def _times(column: tuple[int, ...], dim: Dim, solver: Solver) -> Times | None:
    """The dim if it is so many times a number of rows, as it is expected to be."""
    if not isinstance(dim, Times) or dim.name not in solver.table.symbols:
        return None
    values = solver.values(solver.table.symbol(dim.name))
    return dim if column == tuple(value * dim.factor for value in values) else None


def _refused(rows: Rows, error: UnsupportedError, reason: str) -> UnsupportedError:
    """Why the rows of an operator cannot fill their bound."""
    most = "most" if rows.bound is None else str(rows.bound)
    told = f"data decides how many rows it has, and what follows does not take the {most} there can be: {reason}"
    reject = Reject(rows.operator, DATA_DEPENDENT, told, rows.node)
    return UnsupportedError([reject], target=error.target, where=error.where)
