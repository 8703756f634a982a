"""Compiles a model with dynamic dimensions at sample sizes, until a set of them tells how its program depends on them."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeVar

from hipdnn_mlir_runtime.errors import (
    NO_ROW,
    HipdnnMlirError,
    ModelError,
    PaddingError,
    StaticDimensionsError,
    UnsupportedError,
)

from ..dynamic.input_sizes import InputSizes
from ..dynamic.solver import Solver
from ..frontend.shape_inference import DATA_DEPENDENT, SIZED_BY_DATA
from ..frontend.sizes.samples import MAX_BEYOND
from .source import Prepared, Source

Made = TypeVar("Made")


def at_samples(source: Source[Prepared], sizes: InputSizes, use: Callable[[Sequence[Prepared], Solver], Made]) -> Made:
    """Use a model with dynamic dimensions at the first set of sample sizes that it accepts.

    Args:
        source: the model.
        sizes: its inputs, some of them open.
        use: is given the model at each point of a set, and a solver with what its nodes say of its sizes.

    Raises:
        HipdnnMlirError: no set does; the error of the first.
    """
    failure: HipdnnMlirError | None = None
    sets, beyond = source.samples(sizes), 0
    while chosen := next(sets, None):
        try:
            models = source.at([sizes.at(point) for point in chosen.points])
            solver = Solver(sizes.table, chosen.points, sizes.multiples)
            source.tell(models, solver)
            (other,) = source.at([sizes.at(chosen.held_out)])
            source.check(models, other, chosen.held_out, solver)
            return use(models, solver)
        except (ModelError, UnsupportedError) as error:
            told = sizes.meaning(chosen.points[error.sample])
            if not _is_of_sizes(error):
                if not _has_numbers(error):
                    raise
                if failure is not None:  # these sizes may be too small for what larger ones were refused for
                    raise failure from error
                error.hint = "; ".join(filter(None, (told, error.hint)))
                raise
            if not _is_of_data(error):
                error.hint = f"{told}; give sizes that are fixed or equal with --shape"
            failure = failure or error
            if beyond < error.beyond <= MAX_BEYOND:
                beyond = error.beyond
                sets = chain(source.samples(sizes, beyond), sets)
    assert failure is not None
    raise failure


def _has_numbers(error: HipdnnMlirError) -> bool:
    """Whether an error speaks of sizes as numbers, those of a sample; that an operator has no row is true of all sizes."""
    return isinstance(error, UnsupportedError) and any(reject.rule != NO_ROW for reject in error.rejects)


def _is_of_sizes(error: HipdnnMlirError) -> bool:
    """Whether a model that fails at one set of sample sizes may do at another."""
    if isinstance(error, (PaddingError, StaticDimensionsError)):
        return False
    if isinstance(error, UnsupportedError):
        return all(reject.rule == DATA_DEPENDENT for reject in error.rejects)
    return True


def _is_of_data(error: HipdnnMlirError) -> bool:
    """Whether static sizes would not correct it."""
    return isinstance(error, UnsupportedError) and any(reject.reason == SIZED_BY_DATA for reject in error.rejects)
