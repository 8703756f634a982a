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
from ..frontend.counted import Counted, counted
from ..frontend.prepare import Slim, with_shapes
from ..frontend.shape_inference import DATA_DEPENDENT
from ..frontend.sizes.samples import Samples
from ..ir.imported import Imported
from ..passes.pipeline import Runner
from ..program.schema import ProgramModel
from .lower import lower_to_torch
from .samples import at_samples
from .source import OnnxSource, Source

Cuts = dict[str, list[str]]
"""Output -> per dim the output that says how many of it count, an empty text where all do."""


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
        found = _counted(model, sizes.table.symbols)
        if found is None:
            raise
        where, external = source.where, source.external
        cuts = _cuts(_Behind(found.behind, where, external), found, shapes, error)
        made = make(OnnxSource(found.bounded, where, external), **{**options, "shapes": shapes})
        made.model.counted = cuts
        return made


class _Behind(OnnxSource):
    """What is behind the rows, looked at for one set of sample sizes: what fails there is refused."""

    def samples(self, sizes: InputSizes) -> Iterator[Samples]:
        """The first of the model's."""
        yield next(super().samples(sizes))


def _counted(model: onnx.ModelProto, symbols: Collection[str]) -> Counted | None:
    try:
        return counted(model, symbols)
    except onnx.shape_inference.InferenceError:
        return None


def _cuts(behind: OnnxSource, made: Counted, shapes: Shapes, error: UnsupportedError) -> Cuts:
    """Which dims of the outputs are numbers of rows.

    Raises:
        UnsupportedError: rows behind those that count would reach a result.
    """
    found: Cuts = {each.name: [] for each in made.rows}
    reasons: list[tuple[str, str | None]] = []
    names = {each.name: [1] for each in made.rows}  # any bucket: what counts is which sizes have some

    def look(models: Sequence[Slim], solver: Solver) -> None:
        padding = BucketedSizes(solver, names)

        def check(imported: Sequence[Imported]) -> None:
            inputs, outputs = ([info.name for info in infos] for infos in (imported[0].inputs, imported[0].outputs))
            mixing = check_padding([each.module.operation for each in imported], inputs, outputs, padding)
            if mixing is not None:
                reasons.append((str(mixing), mixing.symbol))
            cuts, computed = _counted_dims(imported, padding)
            found.update(cuts)
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
        raise _refused(made, error, str(other)) from other
    if reasons:
        raise _refused(made, error, *reasons[0])
    return found


def _counted_dims(imported: Sequence[Imported], padding: BucketedSizes) -> tuple[Cuts, list[str]]:
    """The dims of the outputs that are numbers of rows, and why others must not be computed from such."""
    cuts: Cuts = {}
    reasons = []
    for infos in zip(*(each.outputs for each in imported), strict=True):
        columns = list(zip(*(info.dims for info in infos), strict=True))
        names = [padding.symbol_of(column) or "" for column in columns]
        if any(names):
            cuts[infos[0].name] = names
        for axis, (column, name) in enumerate(zip(columns, names, strict=True)):
            if not name and padding.symbol_in(column):
                reasons.append(f"dimension {axis} of output {infos[0].name!r} is computed from it")
    return cuts, reasons


def _refused(made: Counted, error: UnsupportedError, reason: str, name: str | None = None) -> UnsupportedError:
    """Why the rows of an operator cannot fill their bound."""
    rows = next((each for each in made.rows if each.name == name), made.rows[0])
    most = "most" if rows.bound is None else str(rows.bound)
    told = f"data decides how many rows it has, and what follows does not take the {most} there can be: {reason}"
    reject = Reject(rows.operator, DATA_DEPENDENT, told, rows.node)
    return UnsupportedError([reject], target=error.target, where=error.where)
