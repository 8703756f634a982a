"""Whether dims of the same name are of one size: a name is a hint, the model's operators decide (adr/0021)."""

import logging
from collections.abc import Collection, Mapping

import onnx

from hipdnn_mlir_runtime.errors import ModelError, UnsupportedError

from ..dynamic.input_sizes import Buckets, InputSizes, Shapes
from ..ops.evaluate import Array
from .prepare import slim_models
from .shape_inference import unknown_results
from .sizes.samples import samples_for

logger = logging.getLogger(__name__)


def promised_names(shapes: Shapes, buckets: Buckets) -> set[str]:
    """The names by which a user speaks of sizes: they do mean one."""
    given: set[str] = set(buckets)
    for name, size in shapes.items():
        if isinstance(size, (int, str, type(None))):
            given |= {name, str(size)}
        else:
            given |= {each for each in size if isinstance(each, str)}
    return given


def separated(
    proto: onnx.ModelProto,
    sizes: InputSizes,
    promised: Collection[str],
    where: str = "model",
    external: Mapping[str, Array] | None = None,
) -> InputSizes:
    """A model's sizes with one of its own for each dim that shares its name with others, where the model takes different ones.

    Args:
        proto: the model; not modified.
        sizes: its inputs.
        promised: names that do mean one size.
        where: the model's file, for messages.
        external: as for `slim_models`.
    """
    for symbol in sizes.table.symbols:
        if symbol in promised:
            continue
        for candidate in sizes.separations(symbol):
            if _fits(proto, candidate, where, external):
                logger.info("dims named %r may have different sizes", symbol)
                sizes = candidate
                break
    return sizes


def _fits(proto: onnx.ModelProto, sizes: InputSizes, where: str, external: Mapping[str, Array] | None) -> bool:
    """Whether the shapes of all values follow where the symbols are different numbers."""
    point = next(iter(samples_for(proto, sizes))).points[0]
    try:
        (slim,) = slim_models(proto, [sizes.at(point)], where, external)
        unknown_results(slim.model, where)
    except (ModelError, UnsupportedError) as error:
        logger.debug("dims of the same name are of one size: %s", error)
        return False
    return True
