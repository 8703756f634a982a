"""What cuDNN takes of quantized models: exact sums of products, scaled, with a residual, and rounded to bytes (docs/cuda.md)."""

from dataclasses import dataclass, field

import numpy as np

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.dtypes import F16, F32, I8, I32

from ..ops.graph import Graph, Node, Tensor
from ..ops.spec import Refusal
from .graph_parts import IMAGE_RANK, copied, is_packed, mode_of, result_of
from .nvidia import conform_cudnn
from .rules import CONVOLUTION, MATMUL, POINTWISE

_CHANNEL_MULTIPLE, _GROUP_MULTIPLE, _RESULT_MULTIPLE = 16, 32, 8
"""Of channels of integers that are summed, in one group or in several, and of those of the result."""
_GREATEST_STRIDE = 8
"""Beyond it, engine 4 of cuDNN 9.19 computes garbage where there is an epilogue (docs/cuda.md)."""
_SCALED = (P.MUL, P.ADD)
_QUANTIZE = (
    P.DIV, P.FLOOR, P.ADD, P.SUB, P.MUL, P.FLOOR, P.CMP_NEQ, P.CMP_EQ, P.LOGICAL_AND, P.CMP_GT, P.LOGICAL_OR, P.BINARY_SELECT, P.ADD,
    P.RELU_FWD, P.IDENTITY,
)  # fmt: skip
"""The nodes of the operator Quantize."""
_DEQUANTIZE = (P.IDENTITY, P.SUB, P.MUL)
"""Those of Dequantize."""


@dataclass
class _Sums:
    """The nodes of a graph by what they are for; the rest of it is none."""

    product: Node
    scaled: list[Node] = field(default_factory=list)
    residual: list[Node] = field(default_factory=list)
    added: Node | None = None
    relu: Node | None = None
    quantize: list[Node] = field(default_factory=list)

    @property
    def result(self) -> int:
        """The tensor that is stored."""
        last = [self.product, *self.scaled, *filter(None, (self.added, self.relu)), *self.quantize]
        return int(result_of(last[-1]))


class CudnnExactSums:
    """A convolution or matmul whose sums are wider than its operands, times a factor, plus an offset and a residual of bytes, cut at 0.

    That is signed bytes summed in int32, or f16 summed in f32: numbers of up to 11 bits are exact then. The result is f32 or signed bytes,
    to the nearest even number and clamped, as the operator Quantize says or as the last sum's type does. Of bytes, cuDNN 9.19 takes no
    unsigned ones, no zero points, no depthwise convolutions, and it stores results without gaps, whatever their strides
    (bench/results/2026-11-26-integers-gpu.txt).
    """

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        try:
            sums = _read(graph)
            _check_types(graph, sums)
        except Refusal as refusal:
            return refusal.reason
        return None


def conform_sums(graph: Graph) -> Graph:
    """The graph in the form of cuDNN's, if it is one that `CudnnExactSums` takes.

    Without the subtraction of zero points that are 0, and without the nodes of a rounding, which is what storing bytes does. Matmuls as
    by `conform_cudnn`.
    """
    if not any(node.type in (CONVOLUTION, MATMUL) for node in graph.nodes):
        return graph
    try:
        graph = _without_zero(graph)
        sums = _read(graph)
    except Refusal:
        return graph
    made = copied(graph)
    order = [*sums.residual, sums.product, *sums.scaled, *filter(None, (sums.added, sums.relu))]
    kept = [made.nodes[_place(graph, node)] for node in order]
    if sums.quantize:
        made.tensors[result_of(kept[-1])] = made.tensors[sums.result]
    if len(sums.residual) == len(_DEQUANTIZE):
        # Bytes times a number, in the place of their difference from 0 times the number.
        source = next(iter(kept[0].inputs.values()))
        scale = kept[2]
        scale.inputs = {name: source if place == 0 else t for place, (name, t) in enumerate(scale.inputs.items())}
        kept = [*kept[3 : 4 + len(sums.scaled)], scale, *kept[4 + len(sums.scaled) :]]
    made.nodes = kept
    return conform_cudnn(made)


def _place(graph: Graph, node: Node) -> int:
    return next(place for place, other in enumerate(graph.nodes) if other is node)


def _without_zero(graph: Graph) -> Graph:
    """Without the subtraction of a 0 from what is multiplied."""
    product = next(node for node in graph.nodes if node.type in (CONVOLUTION, MATMUL))
    key, left = next(iter(product.inputs.items()))
    place = graph.producer(left)
    if place is None or mode_of(graph.nodes[place]) != P.SUB or not _is_number(graph, graph.nodes[place], 0):
        return graph
    made = copied(graph)
    made.nodes[_place(graph, product)].inputs[key] = next(iter(graph.nodes[place].inputs.values()))
    del made.nodes[place]
    return made


def _read(graph: Graph) -> _Sums:
    """The nodes by what they are for; raises Refusal."""
    products = [node for node in graph.nodes if node.type in (CONVOLUTION, MATMUL)]
    if len(products) != 1 or any(node.type not in (CONVOLUTION, MATMUL, POINTWISE) for node in graph.nodes):
        raise Refusal("graph", "takes one convolution or matmul and pointwise nodes")
    sums = _Sums(products[0])
    node = _reader(graph, result_of(sums.product))
    for mode in _SCALED:
        if node is not None and mode_of(node) == mode and _side(graph, node, [sums.product, *sums.scaled]) is None:
            sums.scaled.append(node)
            node = _reader(graph, result_of(node))
    if node is not None and mode_of(node) == P.ADD:
        sums.residual = _dequantization(graph, _side(graph, node, [sums.product, *sums.scaled]))
        sums.added, node = node, _reader(graph, result_of(node))
    if node is not None and mode_of(node) == P.RELU_FWD and len(node.attributes) <= 2:
        sums.relu, node = node, _reader(graph, result_of(node))
    if node is not None:
        sums.quantize = _quantization(graph, node)
    count = 1 + len(sums.scaled) + len(sums.residual) + len(sums.quantize) + sum(map(bool, (sums.added, sums.relu)))
    if count != len(graph.nodes):
        raise Refusal("graph", "takes a product, MUL, ADD, a residual of bytes, RELU_FWD and a rounding to bytes")
    return sums


def _reader(graph: Graph, tensor: int) -> Node | None:
    """The first node that reads a tensor which is stored nowhere."""
    if not graph.tensors[tensor].is_virtual:
        return None
    return next((node for node in graph.nodes if tensor in node.inputs.values()), None)


def _side(graph: Graph, node: Node, chain: list[Node]) -> int | None:
    """The node that makes the operand that the chain does not, or None."""
    made = {result_of(other) for other in chain}
    others = [t for t in node.inputs.values() if t not in made]
    return graph.producer(others[0]) if len(others) == 1 else None


def _dequantization(graph: Graph, last: int | None) -> list[Node]:
    """The nodes that scale bytes whose zero point is 0; in cuDNN's form it is one."""
    found: list[Node] = []
    while last is not None and len(found) < len(_DEQUANTIZE):
        found.insert(0, graph.nodes[last])
        last = graph.producer(next(iter(graph.nodes[last].inputs.values())))
    modes = tuple(map(mode_of, found))
    is_whole = modes == _DEQUANTIZE and _is_number(graph, found[1], 0)
    if not (is_whole or modes == (P.MUL,)) or graph.tensors[next(iter(found[0].inputs.values()))].dtype is not I8:
        raise Refusal("graph", "adds something else than bytes whose zero point is 0")
    return found


def _quantization(graph: Graph, first: Node) -> list[Node]:
    """The nodes of Quantize with scale 1, zero point 0 and the limits of i8."""
    start = _place(graph, first)
    found = graph.nodes[start : start + len(_QUANTIZE)]
    wrong = Refusal("graph", "is followed by something else than a rounding to signed bytes")
    if tuple(map(mode_of, found)) != _QUANTIZE:
        raise wrong
    limits = [found[-2].get(name) for name in (A.POINTWISE_RELU_LOWER_CLIP, A.POINTWISE_RELU_UPPER_CLIP)]
    if not _is_number(graph, found[0], 1) or not _is_number(graph, found[-3], 0) or limits != [-128.0, 127.0]:
        raise wrong
    return found


def _is_number(graph: Graph, node: Node, number: float) -> bool:
    """Whether the second operand of a node is a number."""
    tensor = graph.tensors[list(node.inputs.values())[1]]
    return tensor.value is not None and bool((np.frombuffer(tensor.value, tensor.dtype.numpy) == number).all())


def _check_types(graph: Graph, sums: _Sums) -> None:
    left, right = (graph.tensors[index] for index in list(sums.product.inputs.values())[:2])
    total, result = graph.tensors[result_of(sums.product)].dtype, graph.tensors[sums.result]
    kinds = (left.dtype, right.dtype, total)
    if result.dtype not in (I8, F32) or kinds not in ((I8, I8, I32), (F16, F16, F32)):
        raise Refusal("dtype", f"multiplies {left.dtype} by {right.dtype}, summed in {total}, to {result.dtype}")
    if not all(is_packed(tensor) or is_packed(tensor, channels_last=True) for tensor in (left, result)):
        raise Refusal("layout", "has an operand or result with gaps")
    strides = next((v for name, _, v in sums.product.attributes if name == A.CONVOLUTION_FILTER_STRIDES), [1])
    if sums.scaled and max(strides) > _GREATEST_STRIDE:
        raise Refusal(
            "attribute", f"has a convolution of stride {max(strides)} with an epilogue, which cuDNN computes wrong"
        )
    if left.dtype is I8:
        if len(sums.scaled) < len(_SCALED):
            raise Refusal("graph", "stores sums of integers")
        _check_channels(sums.product.type == MATMUL, left, right)


def _check_channels(is_matmul: bool, left: Tensor, right: Tensor) -> None:
    if not is_matmul and len(left.dims) > IMAGE_RANK:
        raise Refusal("rank", f"has a convolution of rank {len(left.dims)}")
    inner, outer = (right.dims[-2], right.dims[-1]) if is_matmul else (right.dims[1], right.dims[0])
    least = _CHANNEL_MULTIPLE if is_matmul or inner == left.dims[1] else _GROUP_MULTIPLE
    if inner % least or outer % _RESULT_MULTIPLE:
        wanted = f"multiples of {least} and {_RESULT_MULTIPLE}"
        raise Refusal("shape", f"sums {inner} products for each of {outer} channels; wanted: {wanted}")
