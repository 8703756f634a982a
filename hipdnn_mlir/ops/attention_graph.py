"""Graphs of one attention that NVIDIA's matrix units compute as they lie in memory (`codegen/kernels/units_attention.py`)."""

from dataclasses import dataclass

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Descriptor as D
from hipdnn_mlir_runtime.dtypes import BF16, BOOL, F16, F32

from .graph import Graph, Tensor
from .spec import Refusal

UNIT_FEATURES, _MOST_FEATURES = 16, 128
"""Inner positions of one multiplication of matrix units."""
_PAIR = 2
"""Numbers of 16 bits in a word."""
_READ = (
    A.OPERATION_SDPA_FWD_QDESC,
    A.OPERATION_SDPA_FWD_KDESC,
    A.OPERATION_SDPA_FWD_VDESC,
    A.OPERATION_SDPA_FWD_ATTN_MASK_EXT,
)
_OTHER_MASKS = (
    A.SDPA_FWD_ALIBI_MASK_EXT,
    A.SDPA_FWD_PADDING_MASK_EXT,
    A.SDPA_FWD_CAUSAL_MASK_BOTTOM_RIGHT_EXT,
    A.SDPA_FWD_LEFT_BOUND_EXT,
    A.SDPA_FWD_RIGHT_BOUND_EXT,
    A.SDPA_FWD_SOFT_CAP_MLIR_EXT,
)


@dataclass(frozen=True)
class Attention:
    """What such a graph computes: softmax(query key^T * scale + mask) value.

    Attributes:
        query, key, value, output: (batch, heads, rows, features); heads of keys and of values divide the queries'.
        mask: broadcasts to (batch, heads, queries, keys): added, or true where a query attends a key; None without one.
        scale: of the scores.
        is_causal: a query attends the keys up to its own position.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    mask: Tensor | None
    scale: float
    is_causal: bool


def units_attention(graph: Graph) -> Attention:
    """The attention of a graph; raises Refusal where it is none, or matrix units cannot read its operands."""
    if len(graph.nodes) != 1 or graph.nodes[0].type != D.OPERATION_SDPA_FWD_DESCRIPTOR:
        raise Refusal("graph", "takes one attention")
    (node,) = graph.nodes
    beside = next((name for name in node.inputs if name not in _READ), None)
    beside = beside or next((name for name in _OTHER_MASKS if node.get(name)), None)
    if beside is not None:
        name = beside[0] if isinstance(beside, tuple) else beside
        raise Refusal("attribute", f"has attention with {A(name).name.lower()}")
    query, key, value, mask = (graph.tensors[node.inputs[name]] if name in node.inputs else None for name in _READ)
    assert query is not None
    assert key is not None
    assert value is not None
    output = graph.tensors[node.outputs[A.OPERATION_SDPA_FWD_ODESC]]
    if query.dtype not in (F16, BF16):
        raise Refusal("dtype", f"has attention of {query.dtype}")
    if mask is not None and mask.dtype not in (query.dtype, F32, BOOL):
        raise Refusal("dtype", f"has a mask of {mask.dtype}")
    for tensor in (query, key, value, output):
        _check_rows(tensor)
    scale, is_causal = node.get(A.SDPA_FWD_ATTN_SCALE_VALUE_EXT, 1.0), node.get(A.SDPA_FWD_CAUSAL_MASK_EXT, False)
    return Attention(query, key, value, output, mask, float(scale), bool(is_causal))


def _check_rows(tensor: Tensor) -> None:
    features = tensor.dims[3]
    if features % UNIT_FEATURES or features > _MOST_FEATURES:
        raise Refusal(
            "shape", f"has heads of {features} features: expected a multiple of {UNIT_FEATURES} up to {_MOST_FEATURES}"
        )
    if tensor.strides[3] != 1 or access_of(tensor, _PAIR) < _PAIR:
        raise Refusal("strides", f"has features with strides {list(tensor.strides)} on {tensor.alignment} bytes")


def access_of(tensor: Tensor, count: int) -> int:
    """Elements of one access where `count` adjacent features are wanted, from a multiple of that on; a power of two."""
    size = min(count & -count, 16 // tensor.dtype.bytes)
    steps = [step for size_, step in zip(tensor.dims[:3], tensor.strides[:3], strict=True) if size_ > 1]
    while size > 1 and (tensor.alignment % (size * tensor.dtype.bytes) or any(step % size for step in steps)):
        size //= 2
    return size
