"""hipdnn-sign-integers: unsigned bytes become signed ones, and zero points part of offsets, for engines that multiply nothing else."""

from collections.abc import Sequence
from dataclasses import replace

from torch_mlir import ir
from torch_mlir.dialects import func, torch

from hipdnn_mlir_runtime.dtypes import F32, I8, I32, U8
from hipdnn_mlir_runtime.errors import Reject

from ..ir.blocks import erase_dead, operations, public_functions
from ..ir.claims import why_no_engine, why_not_taken
from ..ir.literals import constant_list, splat
from ..ir.module_pass import module_pass
from ..ir.operators import is_operator, operator, operator_name
from ..ir.terms import cast_to
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import literal_scalar, lookup, onnx_attributes, producer
from ..ir.view_chains import dims_of, movement_of, padded, reshaped
from ..ops.spec import Pad, TensorType
from ..targets.table import find_target
from ..targets.target import Target

_CONV, _MATMUL = "QuantizedConv", "QuantizedMatMul"
_MIDDLE = 128
"""By which unsigned bytes exceed the signed ones in their place."""
_MAXIMA = (torch.AtenMaxPool1dOp, torch.AtenMaxPool2dOp, torch.AtenMaxPool3dOp)


@module_pass("hipdnn-sign-integers")
def sign_integers(module: ir.Operation, *, target: str = "host") -> None:
    """Compute with signed bytes whose zero is 0 where an engine takes QuantizedConv and QuantizedMatMul of those alone.

    All bytes that the model quantizes become 128 less, and so do their zero points, through data movement and maxima of windows. An
    operator with another zero point than 0 gets an offset without what that adds to its sums, and a border of zero points. Nothing changes
    where no engine takes any operator then.

    Before: `%q = Quantize %x {zero = 5, to = "u8"}`; `%y = QuantizedConv %q, %w, 5, %f, %o {pads = [1, 1, 1, 1], to = "u8"}`.
    After: `%q = Quantize %x {zero = -123, to = "i8"}`; `%p = constant_pad_nd %q`; `%y = QuantizedConv %p, %w, 0, %f, %o2 {to = "i8"}`.
    There o2 is o - 128 + 123 * f * sum(w).

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)
    for function in public_functions(module):
        wanted = [op for op in operations(function) if _is_better_signed(op, library)]
        if wanted:
            _Signing(wanted).run(function)


def _is_better_signed(op: ir.OpView, library: Target) -> bool:
    """Whether an engine takes an operator when its bytes are signed and its zero point is 0, and none takes it as it is."""
    if not is_operator(op, _CONV, _MATMUL):
        return False
    found, reject = lookup(op), why_not_taken(op, library)
    if isinstance(found, Reject) or reject is None or reject.rule != "engine" or not _has_known_border(op):
        return False
    x, w, zero, *channels = found[1].args
    x, zero = replace(x, type=TensorType(x.type.dims, I8)), replace(zero, type=TensorType((), I32), scalar=0)
    kind = found[1].results[0]
    stated = found[1].attributes
    signed = replace(
        found[1],
        args=[x, w, zero, *channels],
        results=[TensorType(kind.dims, I8 if kind.dtype is U8 else kind.dtype)],
        attributes={**stated, "to": "i8" if kind.dtype is U8 else stated.get("to", "u8")},
    )
    return why_no_engine(signed, list(op.results), library) is None


def _has_known_border(op: ir.OpView) -> bool:
    return not any(onnx_attributes(op).get("pads", ())) or _number(op.operands[2]) is not None


def _number(value: ir.Value) -> int | None:
    """The number that a zero point is, if it is known."""
    source = producer(value)
    known = literal_scalar(source) if isinstance(source, torch.ValueTensorLiteralOp) else None
    return None if known is None else int(known)


class _Signing:
    """One walk over a function, in order."""

    def __init__(self, wanted: list[ir.OpView]) -> None:
        self._wanted = wanted
        self._signed: dict[ir.Value, ir.Value] = {}
        """Unsigned bytes -> the signed ones that they are 128 more than."""

    def run(self, function: func.FuncOp) -> None:
        """Rewrite, and erase what nothing reads any more."""
        for op in operations(function):
            with ir.InsertionPoint(op), op.location:
                self._visit(op)
        erase_dead(function)

    def _visit(self, op: ir.OpView) -> None:
        if is_operator(op, "Quantize"):
            self._quantize(op)
        elif is_operator(op, "Dequantize") and op.operands[0] in self._signed:
            op.operands[0] = self._signed[op.operands[0]]
            _state(op, zero=onnx_attributes(op)["zero"] - _MIDDLE)
        elif is_operator(op, _CONV, _MATMUL):
            self._operator(op)
        elif isinstance(pad := movement_of(op), Pad) and op.operands[0] in self._signed:
            borders = list(zip(pad.low, pad.high, strict=True))
            self._replace(op, padded(self._signed[op.operands[0]], borders, pad.value - _MIDDLE))
        elif (isinstance(op, _MAXIMA) or movement_of(op) is not None) and op.operands[0] in self._signed:
            moved = op.operation.clone()
            moved.operands[0] = self._signed[op.operands[0]]
            moved.results[0].set_type(torch_tensor(dims_of(op.results[0]), I8))
            self._replace(op, moved.results[0])

    def _quantize(self, op: ir.OpView) -> None:
        stated = onnx_attributes(op)
        if tensor_type(op.results[0].type).dtype is U8:
            kind = torch_tensor(dims_of(op.results[0]), I8)
            how = {"scale": stated["scale"], "zero": stated["zero"] - _MIDDLE, "to": "i8"}
            self._replace(op, operator("Quantize", kind, op.operands, **how))

    def _operator(self, op: ir.OpView) -> None:
        """The operator of signed bytes; if an engine takes that alone, with its zero point in the offset."""
        x, w, zero, factor, offset = op.operands
        stated, result, shift, known = onnx_attributes(op), tensor_type(op.results[0].type), 0, _number(zero)
        is_wanted = op in self._wanted
        if tensor_type(x.type).dtype is U8 and (is_wanted or (x in self._signed and known is not None)):
            x, shift = self._signed.get(x) or _moved(x, _MIDDLE, "i8"), _MIDDLE
        if is_wanted and known != shift:
            offset = _without_zero(op, shift)
        if is_wanted and known is not None:
            x, stated["pads"] = _bordered(x, stated.get("pads", ()), known - shift)
        if is_wanted:
            zero = splat(0, (), I32)
        elif known is not None:
            zero = splat(known - shift, (), I32)
        is_signed = result.dtype is not U8
        if not is_signed:
            offset, stated["to"] = _sum(offset, splat(-float(_MIDDLE), (), F32)), "i8"
        kind = op.results[0].type if is_signed else torch_tensor(result.static_dims(), I8)
        made = operator(operator_name(op), kind, [x, w, zero, factor, offset], **stated)
        if is_signed:
            op.results[0].replace_all_uses_with(made)
            op.erase()
        else:
            self._replace(op, made)

    def _replace(self, op: ir.OpView, signed: ir.Value) -> None:
        """Have readers of an op that are not visited, or not changed then, read signed bytes plus 128."""
        unsigned = _moved(signed, -_MIDDLE, "u8")
        op.results[0].replace_all_uses_with(unsigned)
        self._signed[unsigned] = signed
        op.erase()


def _moved(value: ir.Value, zero: int, to: str) -> ir.Value:
    """Bytes less a number, as bytes of a type."""
    dims = dims_of(value)
    wide = operator("Dequantize", torch_tensor(dims, F32), [value], scale=1.0, zero=zero)
    return operator("Quantize", torch_tensor(dims, I8 if to == "i8" else U8), [wide], scale=1.0, zero=0, to=to)


def _bordered(x: ir.Value, pads: Sequence[int], number: int) -> tuple[ir.Value, list[int]]:
    """A tensor with a border of a number in the place of padding with zeros, and what is left of that."""
    spatial = len(pads) // 2
    borders = [(0, 0), (0, 0), *zip(pads[:spatial], pads[spatial:], strict=True)]
    return (padded(x, borders, float(number)), [0] * len(pads)) if number and any(pads) else (x, list(pads))


def _without_zero(op: ir.OpView, shift: int) -> ir.Value:
    """The offset less what a zero point, itself less `shift`, adds: the factor times the sum of a channel's weights."""
    _, w, zero, factor, offset = op.operands
    dims = dims_of(w)
    axes, count = (tuple(range(1, len(dims))), dims[0]) if is_operator(op, _CONV) else ((0,), dims[1])
    kind, one = torch_tensor((count,), F32), torch.constant_int(1)
    no, none = torch.constant_bool(False), torch.constant_none()
    sums = torch.aten_sum_dim_IntList(kind, cast_to(w, F32), constant_list(axes), no, none)
    less = torch.aten_rsub_Scalar(
        torch_tensor((), F32), cast_to(reshaped(zero, ()), F32), torch.constant_float(float(shift)), one
    )
    return _sum(offset, torch.aten_mul_Tensor(kind, torch.aten_mul_Tensor(kind, sums, factor), less))


def _sum(left: ir.Value, right: ir.Value) -> ir.Value:
    kind = torch_tensor((max((*dims_of(left), *dims_of(right))),), F32)
    return torch.aten_add_Tensor(kind, left, right, torch.constant_int(1))


def _state(op: ir.OpView, *, zero: int) -> None:
    op.attributes["torch.onnx.zero"] = ir.IntegerAttr.get(ir.IntegerType.get_signed(64), zero)
