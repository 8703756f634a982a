"""Columns of weights as a lane of matrix units reads them: two columns, 16 bytes of each at a step, and the scales that belong to them."""

from collections.abc import Callable, Sequence

from ...ops.few_rows import FewRows, Product
from ...ops.graph import Graph, Tensor
from ..core.builder import KernelBuilder, Value
from ..core.elements import from_memory, memory_type
from .pairs import Pairs

_WORDS = 4
"""Of 32 bits, of a column at a step."""


class ColumnWeights:
    """Reads the weights.

    Args:
        b: where to write.
        graph, found: the matmuls.
        base: the address of a tensor.
        columns: those of this lane.
        count: weights of a column at a step.
        bits: of codes; 0 where weights are floats.
        pairs: makes floats.
    """

    def __init__(
        self, b: KernelBuilder, graph: Graph, found: FewRows, base: Callable[[Tensor], Value], columns: Sequence[Value],
        count: int, bits: int, pairs: Pairs,
    ) -> None:  # fmt: skip
        self.b, self.graph, self.found, self.base, self.columns = b, graph, found, base, columns
        self.count, self.bits, self.pairs = count, bits, pairs

    def raw(self, step: Value) -> list[Value]:
        """This lane's words of 32 bits of its columns of each matrix at a step, and behind those of each matrix their scales."""
        return [value for product in self.found.products for value in self._raw_of(product, step)]

    def _raw_of(self, product: Product, step: Value) -> list[Value]:
        b, weights = self.b, self.graph.tensors[product.weights]
        base, stride = self.base(weights), weights.strides[-1] // self.count
        found = [w for c in self.columns for w in b.load(base, b.mul(b.add(b.mul(c, stride), step), 4), b.i32, 4)]
        if product.scales is None:
            return found
        scales = self.graph.tensors[product.scales]
        for c in self.columns:
            column = b.mul(c, scales.strides[-1])
            blocks = max(1, self.count // product.block)
            block = b.mul(step, blocks) if blocks > 1 else b.div(step, product.block // self.count)
            found += [self._scale(scales, column, b.add(block, number_)) for number_ in range(blocks)]
        return found

    def _scale(self, scales: Tensor, column: Value, block: Value) -> Value:
        """The scale of a block as memory holds it."""
        at = self.b.add(column, self.b.mul(block, scales.strides[-2]))
        return self.b.load(self.base(scales), at, memory_type(self.b, scales.dtype))[0]

    def numbers(self, product: Product, raw: Sequence[Value]) -> list[list[Value]]:
        """Pairs of 16-bit floats, of each of the two columns."""
        words = [list(raw[:_WORDS]), list(raw[_WORDS : 2 * _WORDS])]
        if product.scales is None:
            return [[self.pairs.of_word(word) for word in column] for column in words]
        dtype = self.graph.tensors[product.scales].dtype
        each = (len(raw) - 2 * _WORDS) // 2
        scales = [raw[2 * _WORDS :][:each], raw[2 * _WORDS :][each:]]
        made = []
        for column, some in zip(words, scales, strict=True):
            factors = [self.pairs.splat(from_memory(self.b, scale, dtype)) for scale in some]
            made.append(
                [
                    pair
                    for at, word in enumerate(column)
                    for pair in self.pairs.numbers(word, self.bits, factors[at * each // _WORDS])
                ]
            )
        return made
