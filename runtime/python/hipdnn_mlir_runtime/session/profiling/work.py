"""What a step computes: the bytes it reads and writes and its arithmetic, counted from the descriptors of its graph or its kernel."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...abi import Attribute as A
from ...abi import DataType
from ...abi import Descriptor as D
from ...dtypes import ALL, BY_NAME

_NAMES = {int(dtype.hipdnn): dtype.name for dtype in ALL if dtype.hipdnn is not None}
"""Names of element types by hipDNN's number."""


@dataclass(frozen=True)
class Work:
    """What one step computes.

    Attributes:
        bytes_read: Bytes of its operands that it reads, each operand once.
        bytes_written: Bytes of its results.
        flops: Arithmetic operations; None where they are not known. A multiplication and the addition behind it are two; one for each
            element of a pointwise operation's result and of what a reduction or a norm reads.
        product_flops: Those of them in matrix products, convolutions and attention.
        product_dtype: The element type of what those multiply; None where there are none.
    """

    bytes_read: int
    bytes_written: int
    flops: int | None
    product_flops: int = 0
    product_dtype: str | None = None


def work_of(row: Mapping[str, Any]) -> Work:
    """Return what a step computes.

    Args:
        row: As ``_runtime.Session.work`` gives it.
    """
    if "bytes" in row:
        return Work(row["bytes"], row["bytes"], 0)
    if "description" in row:
        return _work_of_kernel(json.loads(row["description"]))
    return _work_of_graph(row)


@dataclass(frozen=True)
class _Node:
    """An operation of a graph: its attributes, and all descriptors, among them the tensors that it refers to."""

    attributes: Mapping[int, Sequence[int]]
    descriptors: Descriptors

    def has(self, name: A) -> bool:
        return int(name) in self.attributes

    def values(self, name: A) -> Sequence[int]:
        return self.attributes[int(name)]

    def _tensor(self, name: A) -> Mapping[int, Sequence[int]]:
        return self.descriptors[self.values(name)[0]][1]

    def dims(self, name: A) -> Sequence[int]:
        return self._tensor(name)[int(A.TENSOR_DIMENSIONS)]

    def size(self, name: A) -> int:
        return math.prod(self.dims(name))

    def dtype(self, name: A) -> str:
        number = self._tensor(name)[int(A.TENSOR_DATA_TYPE)][0]
        return _NAMES.get(number, DataType(number).name.lower())


_Products = tuple[A, Callable[[_Node], int | None]]
"""The operand whose element type is that of the products, and how many operations they are."""


def _of_convolution(result: A, filters: A) -> Callable[[_Node], int]:
    """Each element of the result, in a backward one of its gradient, meets the channels of a group in each place of a filter."""
    return lambda node: 2 * node.size(result) * math.prod(node.dims(filters)[1:])


def _of_matmul(node: _Node) -> int:
    return 2 * node.size(A.OPERATION_MATMUL_CDESC) * node.dims(A.OPERATION_MATMUL_ADESC)[-1]


def _of_attention(node: _Node) -> int | None:
    """Both products in full: what a causal mask saves depends on the engine. With a page table, the dims of keys are those of the pages."""
    if node.has(A.OPERATION_SDPA_FWD_PAGE_TABLE_KDESC):
        return None
    *batch, s_q, d_head = node.dims(A.OPERATION_SDPA_FWD_QDESC)
    s_kv, d_value = node.dims(A.OPERATION_SDPA_FWD_VDESC)[-2:]
    return 2 * math.prod(batch) * s_q * s_kv * (d_head + d_value)


_PRODUCTS: dict[D, _Products] = {
    D.OPERATION_MATMUL_DESCRIPTOR: (A.OPERATION_MATMUL_ADESC, _of_matmul),
    D.OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: (
        A.OPERATION_CONVOLUTION_FORWARD_X,
        _of_convolution(A.OPERATION_CONVOLUTION_FORWARD_Y, A.OPERATION_CONVOLUTION_FORWARD_W),
    ),
    D.OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: (
        A.OPERATION_CONVOLUTION_BWD_DATA_DY,
        _of_convolution(A.OPERATION_CONVOLUTION_BWD_DATA_DY, A.OPERATION_CONVOLUTION_BWD_DATA_W),
    ),
    D.OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: (
        A.OPERATION_CONVOLUTION_BWD_FILTER_X,
        _of_convolution(A.OPERATION_CONVOLUTION_BWD_FILTER_DY, A.OPERATION_CONVOLUTION_BWD_FILTER_DW),
    ),
    D.OPERATION_SDPA_FWD_DESCRIPTOR: (A.OPERATION_SDPA_FWD_QDESC, _of_attention),
}

_COUNTED: dict[D, A] = {
    D.OPERATION_POINTWISE_DESCRIPTOR: A.OPERATION_POINTWISE_OUT_0_EXT,
    D.OPERATION_REDUCTION_DESCRIPTOR: A.OPERATION_REDUCTION_XDESC,
    D.OPERATION_BATCHNORM_INFERENCE_DESCRIPTOR_EXT: A.OPERATION_BATCHNORM_INFERENCE_X_EXT,
    D.OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT: A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_X_EXT,
    D.OPERATION_LAYERNORM_DESCRIPTOR_EXT: A.OPERATION_LAYERNORM_X_EXT,
    D.OPERATION_RMSNORM_DESCRIPTOR_EXT: A.OPERATION_RMSNORM_X_EXT,
    D.OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR: A.OPERATION_BLOCK_SCALE_QUANTIZE_XDESC,
    D.OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR: A.OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC,
}
"""Operations that count one for each element of this tensor."""


def _elements_of(kind: int, node: _Node) -> int | None:
    """Return how much an operation without products counts; None where it is not known."""
    if kind == D.OPERATION_RESAMPLE_FWD_DESCRIPTOR:
        return node.size(A.OPERATION_RESAMPLE_FWD_YDESC) * math.prod(node.values(A.RESAMPLE_WINDOW_DIMS))
    counted = _COUNTED.get(D(kind))
    return None if counted is None else node.size(counted)


Descriptors = Sequence[tuple[int, Mapping[int, Sequence[int]]]]
"""Of a graph, each its type and its values by attribute; a value that is a descriptor is its place among them."""


@dataclass(frozen=True)
class Arithmetic:
    """What a graph computes: as in ``Work``."""

    flops: int | None
    product_flops: int
    product_dtype: str | None


def arithmetic_of(descriptors: Descriptors) -> Arithmetic:
    """Return what the operations among a graph's descriptors compute."""
    flops: int | None = 0
    product_flops, product_dtype = 0, None
    for kind, attributes in descriptors:
        if kind in (D.TENSOR_DESCRIPTOR, D.OPERATIONGRAPH_DESCRIPTOR):
            continue
        node = _Node(attributes, descriptors)
        if kind in _PRODUCTS:
            operand, count = _PRODUCTS[D(kind)]
            counted = count(node)
            product_flops += counted or 0
            product_dtype = node.dtype(operand)
        else:
            counted = _elements_of(kind, node)
        flops = None if flops is None or counted is None else flops + counted
    return Arithmetic(flops, product_flops, product_dtype)


def _work_of_graph(row: Mapping[str, Any]) -> Work:
    done = arithmetic_of(row["descriptors"])
    read, written = (sum(size for is_output, size in row["operands"] if is_output == side) for side in (False, True))
    return Work(read, written, done.flops, done.product_flops, done.product_dtype)


_NO_ARITHMETIC = ("load", "const", "index", "store", "cast")
"""Instructions of an elementwise kernel that count as none."""

_MOVES = ("gather", "gather_elements", "gather_nd", "slice", "pad", "reverse_sequence")
"""Kernels that move elements."""

PICKS = ("gather", "gather_elements", "gather_nd", "slice")
"""Kernels that read as much of their first operand as they write."""

_FOLDS = ("reduce", "scan", "arg_reduce")
"""Kernels that count one for each element of their first operand."""

_SCATTERS = ("scatter_elements", "scatter_nd")
"""Kernels that count one for each element of their third operand, the updates, where they combine it with what is there."""


def _work_of_kernel(kernel: Mapping[str, Any]) -> Work:
    function, tensors = kernel["function"], kernel["tensors"]
    written = sum(_bytes_of(tensor) for tensor in tensors if tensor["role"] == "out")
    sizes = [_bytes_of(tensor) for tensor in tensors if tensor["role"] == "in"]
    if function in PICKS:
        sizes[0] = min(sizes[0], written)
    return Work(sum(sizes), written, _flops_of_kernel(function, tensors, kernel["attributes"]))


def _flops_of_kernel(function: str, tensors: Sequence[Mapping[str, Any]], attributes: Mapping[str, Any]) -> int | None:
    if function in _MOVES or function == "cache_update":
        return 0
    sizes: list[int] = [math.prod(tensor["dims"]) for tensor in tensors]
    if function in _FOLDS:
        return sizes[0]
    if function in _SCATTERS:
        return 0 if attributes["reduction"] == "none" else sizes[2]
    if function == "elementwise":
        return sizes[0] * sum(instruction[0] not in _NO_ARITHMETIC for instruction in attributes["code"])
    return None


def _bytes_of(tensor: Mapping[str, Any]) -> int:
    """Return the bytes of a tensor's elements; what a stride of 0 repeats counts once, as in a graph."""
    elements: list[int] = [
        dim for dim, stride in zip(tensor["dims"], tensor["strides"], strict=True) if stride or not dim
    ]
    return math.prod(elements) * BY_NAME[tensor["dtype"]].bytes
