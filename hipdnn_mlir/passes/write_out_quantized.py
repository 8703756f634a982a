"""hipdnn-write-out-quantized: convolutions and products of 8 bits that no engine takes are written in wider floats."""

import math

from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.rewrite import PatternRewriter

from hipdnn_mlir_runtime.dtypes import F32, DType

from ..ir.claims import why_not_taken
from ..ir.literals import constant_list, splat
from ..ir.module_pass import module_pass
from ..ir.operators import is_operator, operator
from ..ir.patterns import rewrite_ops
from ..ir.terms import cast_to
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import onnx_attributes
from ..ir.view_chains import dims_of, padded, reshaped
from ..targets.table import find_target


@module_pass("hipdnn-write-out-quantized")
def write_out_quantized(module: ir.Operation, *, target: str = "host") -> None:
    """Write QuantizedConv, QuantizedMatMul and Float8MatMul in wider floats, where no engine takes them as they are.

    Sums of up to 2^24 stay exact, larger ones are rounded as f32 is. A convolution's operands are f16 where the target sums those in f32.

    Before: `%y = torch.operator "hipdnn.onnx.QuantizedMatMul"(%a, %b, %zero, %factor, %offset)`.
    After: `%l = torch.aten.sub.Tensor %a, %zero`; `%s = torch.aten.matmul %l, %b`; `mul`, `add`, `Quantize`.

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)

    def write_out(op: torch.OperatorOp, rewriter: PatternRewriter) -> bool:
        if not is_operator(op, "QuantizedConv", "QuantizedMatMul", "Float8MatMul"):
            return False
        reject = why_not_taken(op, library)
        if reject is None or reject.rule != "engine":
            return False
        is_float8 = is_operator(op, "Float8MatMul")
        rewriter.replace_op(op, [_float8(op) if is_float8 else _written_out(op, library.exact_products)])
        return True

    rewrite_ops(module, write_out)


def _written_out(op: torch.OperatorOp, narrow: DType) -> ir.Value:
    x, w, zero, factor, offset = op.operands
    dims, dtype = dims_of(op.results[0]), tensor_type(op.results[0].type).dtype
    wide = torch_tensor(dims, F32)
    one = torch.constant_int(1)
    left = torch.aten_sub_Tensor(torch_tensor(dims_of(x), F32), cast_to(x, F32), cast_to(reshaped(zero, ()), F32), one)
    if is_operator(op, "QuantizedConv"):
        sums = _convolution(op, wide, cast_to(left, narrow), cast_to(w, narrow))
        channels = (1, dims[1], *(1,) * (len(dims) - 2))
    else:
        sums = torch.aten_matmul(wide, left, cast_to(w, F32))
        channels = dims[-1:]
    scaled = torch.aten_mul_Tensor(wide, sums, _of_channels(factor, channels))
    shifted = torch.aten_add_Tensor(wide, scaled, _of_channels(offset, channels), one)
    if dtype is F32:
        return shifted
    return operator("Quantize", op.results[0].type, [shifted], scale=1.0, zero=0, to=onnx_attributes(op)["to"])


def _float8(op: torch.OperatorOp) -> ir.Value:
    """The product of wider operands, which have the factor in equal parts: neither leaves the range of f16."""
    x, w = op.operands
    dtype, scale = tensor_type(op.results[0].type).dtype, float(onnx_attributes(op)["scale"])
    part = 2.0 ** round(math.log2(scale) / 2)
    left, right = (
        cast_to(
            torch.aten_mul_Tensor(kind, operator("ConvertFloat8", kind, [value], to="f32"), splat(factor, (), F32)),
            dtype,
        )
        for value, factor in ((x, part), (w, scale / part))
        for kind in (torch_tensor(dims_of(value), F32),)
    )
    return torch.aten_linear(op.results[0].type, left, right, torch.constant_none())


def _of_channels(value: ir.Value, channels: tuple[int, ...]) -> ir.Value:
    return reshaped(value, channels if dims_of(value) != (1,) else (1,) * len(channels))


def _convolution(op: torch.OperatorOp, wide: ir.Type, x: ir.Value, w: ir.Value) -> ir.Value:
    """The convolution of floats; a border is written by itself where its two sides differ."""
    stated = onnx_attributes(op)
    spatial = len(dims_of(x)) - 2
    pads = tuple(stated.get("pads") or (0,) * 2 * spatial)
    low, high = pads[:spatial], pads[spatial:]
    if low != high:
        x = padded(x, [(0, 0), (0, 0), *zip(low, high, strict=True)])
        low = (0,) * spatial
    strides, dilations = (tuple(stated.get(name) or (1,) * spatial) for name in ("strides", "dilations"))
    return torch.aten_convolution(
        wide,
        x,
        w,
        torch.constant_none(),
        constant_list(strides),
        constant_list(low),
        constant_list(dilations),
        torch.constant_bool(False),
        constant_list((0,) * spatial),
        torch.constant_int(stated.get("group", 1)),
    )
