"""A model whose caches grow, as the compiler reads it: on buffers that are written in place (adr/0038)."""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import cast

import onnx

from hipdnn_mlir_runtime.errors import HipdnnMlirError
from hipdnn_mlir_runtime.expressions import Expressions

from ..dynamic.input_sizes import InputSizes, Shapes
from ..frontend.cache_edits import NotBufferedError
from ..frontend.growing_caches import Growth, growth_of, with_buffers
from ..frontend.prepare import Slim, slim_models
from ..frontend.sizes.samples import Samples, samples_for
from ..ops.strides import Dims
from ..program.schema import Cache, Growing, ProgramModel, SizedInput
from .source import OnnxSource, Source

logger = logging.getLogger(__name__)

_FLAGS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64, onnx.TensorProto.BOOL)
"""Types of masks in which 0 hides."""
_LONGER = 2
"""How many rows more the other past has that the model is compared at."""


class GrowingSource(OnnxSource):
    """An ONNX model with growing caches.

    Args:
        source: the model.
        growth: its caches.
    """

    def __init__(self, source: OnnxSource, growth: Growth) -> None:
        super().__init__(source.proto, source.where, source.external)
        self.growth = growth

    def sizes(self, shapes: Shapes) -> InputSizes:
        """The program's inputs: all of them with the given dims, or as they are without any."""
        return InputSizes(cast("Mapping[str, Dims]", shapes), Expressions(())) if shapes else self.growth.program

    def samples(self, sizes: InputSizes, beyond: int = 0) -> Iterator[Samples]:
        """Those of the model, with as many rows as the caches have after a run."""
        del sizes
        growth = self.growth
        for found in samples_for(self.proto, growth.model, beyond):
            yield Samples([growth.grown(point) for point in found.points], growth.grown(found.held_out))

    def at(self, points: Sequence[Mapping[str, Dims]]) -> list[Slim]:
        """The model on buffers.

        Raises:
            NotBufferedError: it does more with its caches than is known here.
            ModelError: as for `slim_models`.
        """
        before = [self.growth.before(dims) for dims in points]
        before.append(self.growth.before(points[0], by=_LONGER))
        *slims, longer = slim_models(self.proto, before, self.where, self.external)
        return with_buffers(self.growth, slims, longer)

    @property
    def exact(self) -> dict[str, str]:
        """Why sizes are not rounded up to buckets by padding: whoever runs the program knows a better way."""
        growth = self.growth
        found = {
            growth.symbol: "it is the length of the caches' buffers, in which any number of rows up to that may be valid"
        }
        kinds = {value.name: value.type.tensor_type.elem_type for value in self.proto.graph.input}
        if growth.sized and isinstance(growth.new, str) and all(kinds[name] in _FLAGS for name, _ in growth.sized):
            found[growth.new] = "a run of fewer new rows is filled up to the next one, and its mask hides the rest"
        return found

    def record(self, program: ProgramModel) -> Growing:
        """What the program says of its buffers."""
        inputs, outputs = ([port.name for port in ports] for ports in (program.inputs, program.outputs))
        growth = self.growth
        return Growing(
            length=inputs.index(growth.length),
            rows=list(program.symbols).index(growth.symbol),
            added=growth.new if isinstance(growth.new, int) else growth.program.table.symbol(growth.new),
            caches=[Cache(inputs.index(past), outputs.index(present)) for past, present in growth.caches],
            sized=[SizedInput(inputs.index(name), axis) for name, axis in growth.sized],
        )


def growing_source(
    source: Source[Slim], sizes: InputSizes, promised: Collection[str], kept: Collection[str]
) -> GrowingSource | None:
    """A model with growing caches on buffers; None where it has none, or more is done with them than is known here.

    Args:
        source: the model.
        sizes: its inputs.
        promised: names by which a user speaks of sizes.
        kept: names of lengths of which caches grow as the model says.
    """
    if not isinstance(source, OnnxSource) or sizes.is_static:
        return None

    def at(dims: Mapping[str, Dims]) -> Slim:
        return slim_models(source.proto, [dims], source.where, source.external)[0]

    try:
        growth = growth_of(source.proto, sizes, lambda: source.related(sizes, set(promised)), at)
        if growth is None or growth.symbol in kept:
            return None
        made = GrowingSource(source, growth)
        chosen = next(made.samples(growth.program))
        made.at([growth.program.at(point) for point in chosen.points[:1]])
    except (HipdnnMlirError, NotBufferedError) as error:
        logger.info("caches are copied when they grow: %s", error)
        return None
    return made
