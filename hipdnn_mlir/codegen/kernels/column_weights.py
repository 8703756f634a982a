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
        quad: the number of this lane among those that share a column.
        count: weights of a column at a step.
        bits: of codes; 0 where weights are floats.
        apart: whether scales are those of sums (`two_steps`), instead of those of weights.
        pairs: makes floats.
    """

    def __init__(
        self, b: KernelBuilder, graph: Graph, found: FewRows, base: Callable[[Tensor], Value], columns: Sequence[Value],
        quad: Value, count: int, bits: int, pairs: Pairs, *, apart: bool,
    ) -> None:  # fmt: skip
        self.b, self.graph, self.found, self.base, self.columns, self.quad = b, graph, found, base, columns, quad
        self.count, self.bits, self.pairs, self.apart = count, bits, pairs, apart

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
            if self.apart:
                found += self._two_scales(product, scales, column, step)
                continue
            blocks = max(1, self.count // product.block)
            block = b.mul(step, blocks) if blocks > 1 else b.div(step, product.block // self.count)
            found += [self._scale(scales, column, b.add(block, number_), 1)[0] for number_ in range(blocks)]
        return found

    def _two_scales(self, product: Product, scales: Tensor, column: Value, step: Value) -> list[Value]:
        """Of the two steps whose sums this lane gets."""
        b, of_block, size = self.b, product.block // self.count, scales.dtype.bytes
        first = self.two_steps(step)
        if of_block % 2 == 0:
            return self._scale(scales, column, b.div(first, of_block), 1) * 2
        is_pair = scales.strides[-2] == 1 and scales.strides[-1] % 2 == 0 and scales.alignment % (2 * size) == 0
        if of_block == 1 and is_pair:
            return self._scale(scales, column, first, 2)
        return [self._scale(scales, column, b.div(b.add(first, at), of_block), 1)[0] for at in range(2)]

    def two_steps(self, step: Value) -> Value:
        """The first of two adjacent steps, whose sums this lane gets where they stay apart."""
        b = self.b
        return b.add(b.sub(step, self.quad), b.mul(b.mod(self.quad, 2), 2))

    def _scale(self, scales: Tensor, column: Value, block: Value, count: int) -> list[Value]:
        """Scales of adjacent blocks as memory holds them."""
        at = self.b.add(column, self.b.mul(block, scales.strides[-2]))
        return self.b.load(self.base(scales), at, memory_type(self.b, scales.dtype), count)

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
