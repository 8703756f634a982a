"""hipdnn-fuse-decode-attention: attention of one new token, its rotation and its rows in the caches are one kernel."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.rewrite import PatternRewriter

from hipdnn_mlir_runtime.dtypes import BOOL, F32
from hipdnn_mlir_runtime.errors import Reject

from ..ir.blocks import erase_dead, functions
from ..ir.literals import splat
from ..ir.module_pass import module_pass
from ..ir.patterns import rewrite_ops
from ..ir.terms import fused_location, number
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import argument, lookup, onnx_attributes, producer, readers
from ..ir.view_chains import dims_of, movement_of, reshaped
from ..ops.emitter import Operand
from ..ops.regions import kernel_region
from ..ops.registry import ONNX
from ..ops.spec import Concat, Refusal, Reshape, Slice, TensorArg
from ..ops.strides import Dims
from ..targets.table import find_target

_BIAS, _SINK, _PAGES = 5, 6, 7
"""Operands of CachedAttention that may be left out."""
_FUNCTIONS = (torch.AtenCosOp, torch.AtenSinOp, torch.AtenToDtypeOp, torch.AtenMulScalarOp)
_TABLE = 4
"""The table of pages among the operands of CacheUpdate."""


class _Rotation(NamedTuple):
    """A head, and the angles that it is rotated by."""

    x: ir.Value
    cos: ir.Value
    sin: ir.Value


@module_pass("hipdnn-fuse-decode-attention")
def fuse_decode_attention(module: ir.Operation, *, target: str = "host") -> None:
    """Join CachedAttention of one query with the CacheUpdates that it reads, and with the rotation of query and key, where both have it.

    For GPUs, where each of these would be a launch that costs more than what it computes. The host computes them one by one. Caches may lie
    in pages, and the table of these is the last operand then.

    Before: `%k = torch.operator "hipdnn.onnx.CacheUpdate"(%past_k, %new_k, %start, %p)`; the same of values;
    `%y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %k, %v, %queries, %keys)`.
    After: `%y, %k, %v = torch.operator "hipdnn.onnx.DecodeAttention"(%q, %new_k, %new_v, %past_k, %past_v, %start, %keys, %cos, %sin)`.

    Args:
        module: the module operation.
        target: whose generated code to ask.
    """
    architecture = find_target(target).architecture
    if architecture is None:
        return

    def fuse(op: torch.OperatorOp, rewriter: PatternRewriter) -> bool:
        if not _is_plain_step(op):
            return False
        q, keys, values, _, count, *_ = op.operands
        pages, bias = _given(op, _PAGES), _given(op, _BIAS)
        updates = _updates(op)
        if not _are_alike(updates, dims_of(keys), pages):
            return False
        (past_k, new_k, start, *_), (past_v, new_v, *_) = (update.operands for update in updates)
        turned = [_rotation(value) for value in (q, new_k)]
        angles: list[ir.Value] = []
        if turned[0] is not None and turned[1] is not None and turned[0][1:] == turned[1][1:]:
            q, new_k, angles = turned[0].x, turned[1].x, list(turned[0][1:])
        if pages is not None or bias is not None:
            none = torch.constant_none()
            angles = [*(angles or [none, none]), none if pages is None else pages]
            angles += [] if bias is None else [_added(bias)]
        operands = [q, new_k, new_v, past_k, past_v, start, count, *angles]
        kinds = [op.results[0].type, keys.type, values.type]
        with fused_location([*updates, op]):
            made = torch.OperatorOp(kinds, f"{ONNX}DecodeAttention", operands, 0)
        for name in op.attributes:
            if name != "name":
                made.attributes[name] = op.attributes[name]
        if not _has_code(made, architecture):
            made.erase()
            return False
        for update, result in zip(updates, made.results[1:], strict=True):
            update.results[0].replace_all_uses_with(result)
        rewriter.replace_op(op, [made.results[0]])
        return True

    rewrite_ops(module, fuse)
    for function in functions(module):
        erase_dead(function)


def _is_plain_step(op: torch.OperatorOp) -> bool:
    """Whether an op is attention of one query without a sink and a soft cap, which the kernel does not have."""
    if op.name.value != f"{ONNX}CachedAttention" or _given(op, _SINK) is not None:
        return False
    return dims_of(op.operands[0])[2] == 1 and not onnx_attributes(op).get("softcap", 0.0)


def _are_alike(updates: Sequence[torch.OperatorOp], dims: Dims, pages: ir.Value | None) -> bool:
    """Whether there are two, of the same rows of caches of these dims, in the same pages."""
    if len(updates) != 2 or updates[0].operands[2] != updates[1].operands[2]:
        return False
    return dims_of(updates[0].operands[0]) == dims and all(_given(update, _TABLE) == pages for update in updates)


def _given(op: torch.OperatorOp, index: int) -> ir.Value | None:
    """An operand at the end, which may be left out."""
    is_there = index < len(op.operands) and argument(op.operands[index]) is not None
    return op.operands[index] if is_there else None


def _added(bias: ir.Value) -> ir.Value:
    """A bias of four dims as numbers that are added: 0 for what is shown, where it is of truth values."""
    bias = reshaped(bias, (1,) * (4 - len(dims_of(bias))) + dims_of(bias))
    if tensor_type(bias.type).dtype is not BOOL:
        return bias
    kind = torch_tensor(dims_of(bias), F32)
    return torch.aten_where_self(kind, bias, splat(0.0, (), F32), splat(-math.inf, (), F32))


def _has_code(op: torch.OperatorOp, architecture: str) -> bool:
    """Whether code is generated for an op."""
    from ..codegen import find_architecture
    from ..codegen.generate import parts_of

    found = lookup(op)
    if isinstance(found, Reject):
        return False
    operands = {
        value: Operand(kind.static_dims(), kind.dtype)
        for value in op.operands
        if isinstance(argument(value), TensorArg) and (kind := tensor_type(value.type)).is_static
    }
    kernel = kernel_region(
        [(found[1], list(op.results))], operands, [(value, tensor_type(value.type)) for value in op.results]
    )
    if isinstance(kernel, Reject):
        return False
    try:
        parts_of(kernel.description(), find_architecture(architecture))
    except Refusal:
        return False
    return True


def _updates(attention: torch.OperatorOp) -> list[torch.OperatorOp]:
    """The CacheUpdates whose results attention reads, but those that something in front of it reads, too."""
    sources = [producer(cache) for cache in attention.operands[1:3]]
    updates = [op for op in sources if isinstance(op, torch.OperatorOp) and op.name.value == f"{ONNX}CacheUpdate"]
    return [op for op in updates if not any(reader.is_before_in_block(attention) for reader in readers(op.results[0]))]


def _rotation(value: ir.Value) -> _Rotation | None:
    """What is rotated by halves: `cat [a * cos - b * sin, a * sin + b * cos, rest]` of slices of one tensor."""
    parts = _joined(value)
    if len(parts) == 2 and len(_joined(parts[0])) == 2:
        parts = [*_joined(parts[0]), parts[1]]
    if len(parts) not in (2, 3):
        return None
    real, imaginary = producer(parts[0]), producer(parts[1])
    if not isinstance(real, torch.AtenSubTensorOp) or not isinstance(imaginary, torch.AtenAddTensorOp):
        return None
    if argument(real.alpha) != 1 or argument(imaginary.alpha) != 1:
        return None
    products = [producer(factor) for factor in (real.self_, real.other, imaginary.self_, imaginary.other)]
    factors = [(found.self_, found.other) for found in products if isinstance(found, torch.AtenMulTensorOp)]
    if len(factors) != len(products):
        return None
    (a, cos), (b, sin), *others = factors
    if (
        {(a, _whole(sin)), (b, _whole(cos))} != {(x, _whole(angle)) for x, angle in others}
        or dims_of(cos) != dims_of(sin)
        or len(dims_of(cos)) != 4
    ):
        return None
    half = dims_of(cos)[3]
    slices = [_last(part) for part in (a, b, *parts[2:])]
    starts = [0, half, 2 * half][: len(slices)]
    x = None if slices[0] is None else slices[0][0]
    if x is None or any(found != (x, start) for found, start in zip(slices, starts, strict=True)):
        return None
    is_whole = dims_of(a)[3] == dims_of(b)[3] == half and sum(dims_of(part)[3] for part in parts) == dims_of(x)[3]
    return _Rotation(x, cos, sin) if is_whole and dims_of(cos)[1:3] == (1, 1) else None


def _whole(angles: ir.Value) -> ir.Value:
    """What angles are a half of, where both halves are alike; else the angles."""
    found = _last(angles)
    return found[0] if found is not None and _is_twice(found[0], dims_of(angles)[3]) else angles


def _is_twice(value: ir.Value, half: int) -> bool:
    """Whether a value is a function of angles that are joined with themselves along the last dim."""
    source = producer(value)
    move = movement_of(source)
    if source is None:
        return False
    if isinstance(source, torch.AtenCatOp):
        listed: torch.PrimListConstructOp = producer(source.tensors)
        first, *others = listed.elements
        is_last = isinstance(move, Concat) and move.axis == len(dims_of(value)) - 1
        return is_last and others == [first] and dims_of(first)[-1] == half
    keeps = isinstance(move, Reshape) and dims_of(source.operands[0])[-1:] == dims_of(value)[-1:]
    scales = isinstance(source, torch.AtenMulTensorOp) and number(source.other) is not None
    return (keeps or scales or isinstance(source, _FUNCTIONS)) and _is_twice(source.operands[0], half)


def _joined(value: ir.Value) -> list[ir.Value]:
    """What is joined along the last dim of four; nothing where the value is no such."""
    join = producer(value)
    move = movement_of(join)
    if not isinstance(join, torch.AtenCatOp) or not isinstance(move, Concat) or move.axis != 3:
        return []
    parts = producer(join.tensors)
    return [] if parts is None else list(parts.operands)


def _last(value: ir.Value) -> tuple[ir.Value, int] | None:
    """The tensor of whose last dim the value is a part, and where it starts."""
    source = producer(value)
    move = movement_of(source)
    if (
        source is None
        or not isinstance(move, Slice)
        or set(move.steps) != {1}
        or move.sizes[:-1] != dims_of(source.operands[0])[:-1]
    ):
        return None
    return source.operands[0], int(move.offsets[-1])
