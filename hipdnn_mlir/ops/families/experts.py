"""Products with the weights of experts that are chosen row by row."""

from collections.abc import Mapping, Sequence
from typing import Any

from hipdnn_mlir_runtime.dtypes import BF16, F16, F32, I32, I64, U8

from ..registry import HIPDNN_DOMAIN, ONNX, kernel
from ..spec import Call, OpView, Refusal, TensorType
from .indexing import tensors

_CODES = (4, 8)
"""Bits of weights that are no floats."""


def _types(operands: Sequence[TensorType | None], _: Mapping[str, Any]) -> list[TensorType]:
    x, experts, weights = operands[:3]
    if (
        x is None
        or experts is None
        or weights is None
        or (len(x.dims), len(experts.dims), len(weights.dims)) != (3, 2, 3)
    ):
        raise Refusal("operand", "rows of three dims, experts of two and weights of three are needed")
    return [TensorType((*experts.dims, weights.dims[1]), x.dtype)]


@kernel(f"{ONNX}ExpertMatMul", function="expert_matmul", onnx=(f"{HIPDNN_DOMAIN}.ExpertMatMul",), results=_types)
def expert_matmul(op: OpView) -> Call:
    """(x, experts, weights, scales, zeros; bits, block_size): rows times the weights of the experts that are chosen for each.

    X is f32 (rows, 1 or choices, depth), experts i32 or i64 (rows, choices); the result is (rows, choices, n). Weights are (E, n, depth) of
    floats, or (E, n, depth * bits / 8) of u8: unsigned codes of 4 or 8 bits, of 4 two to a byte, the first in the lower half. A code stands
    for (code - zero) * scale, with an f32 scale and a u8 zero for each block along the depth; without zeros that is the middle, 8 or 128.
    Weights of experts that nobody chooses are not read.
    """
    bits, block = int(op.attributes.get("bits", 0)), int(op.attributes.get("block_size", 0))
    operands = tensors(op, len(op.args))
    x, experts, weights = operands[:3]
    if x.type.dtype is not F32 or experts.type.dtype not in (I32, I64):
        raise Refusal("dtype", f"rows of {x.type.dtype} and experts of {experts.type.dtype}")
    kinds = [operand.type.dtype for operand in operands[2:]]
    if bits not in _CODES and (bits or len(kinds) != 1 or kinds[0] not in (F32, F16, BF16)):
        raise Refusal("dtype", f"weights of {', '.join(map(str, kinds))} in {bits} bits")
    if bits in _CODES and kinds not in ([U8, F32], [U8, F32, U8]):
        raise Refusal("dtype", f"codes of {bits} bits of {', '.join(map(str, kinds))}, expected u8, f32 and u8")
    (rows, shared, depth), choices = x.type.static_dims(), experts.type.static_dims()
    count, n, width = weights.type.static_dims()
    if choices[0] != rows or shared not in (1, choices[1]):
        raise Refusal("shape", f"rows of dims {x.type.dims} for choices of {choices}")
    if width * 8 != depth * bits if bits else width != depth:
        raise Refusal("shape", f"weights of dims {weights.type.dims} for a depth of {depth}")
    if bits:
        blocks = -(-depth // block) if block > 0 else 0
        if block % 2 or not blocks or any(other.type.dims != (count, n, blocks) for other in operands[3:]):
            raise Refusal("shape", f"scales of dims {operands[3].type.dims} for blocks of {block}")
    return Call("expert_matmul", operands, {"bits": bits, "block_size": block} if bits else {"bits": 0})
