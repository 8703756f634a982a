"""Regions of torch ops as hipDNN graphs or kernels, by their rows."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.errors import NO_ROW, Reject

from .emitter import Emitter, Operand, Storage
from .graph import Graph
from .kernels import (
    ELEMENTWISE,
    ElementwiseBuilder,
    Kernel,
    KernelTensor,
    broadcast_strides,
    result_tensor,
    seen_strides,
)
from .spec import Call, OpView, Refusal, TensorType
from .strides import Dims
from .table import find


def emit_region(
    ops: Sequence[tuple[OpView, Sequence[Any]]],
    operands: Mapping[Any, Operand],
    results: Sequence[tuple[Any, TensorType]],
    storage: Sequence[Storage | None] | None = None,
) -> Graph | Reject:
    """Build the graph of a region, or say which op refused and why.

    Args:
        ops: per torch op, in topological order, its view and the SSA keys of its results.
        operands: SSA key -> region operand, in operand order.
        results: SSA key and type of each region result.
        storage: how the buffer of each result stores it; None before buffers exist.
    """
    emitter = Emitter(dtypes.F32)
    view = ops[-1][0] if ops else OpView("hipdnn.graph", (), ())  # a copy yields its operand
    try:
        for index, (key, operand) in enumerate(operands.items()):
            emitter.bind(key, operand, index)
        for view, keys in ops:
            row = find(view.name)
            if row is None or row.emit is None:
                return Reject(view.label, NO_ROW, "no hipDNN operation computes it", view.node)
            made = row.emit(emitter, view)
            for key, kind, value in zip(keys, view.results, made if isinstance(made, list) else [made], strict=False):
                emitter.define(key, value, kind)
        return emitter.finish(results, storage if storage is not None else [None] * len(results))
    except Refusal as refusal:
        return Reject(view.label, refusal.rule, refusal.reason, view.node)


def is_elementwise(name: str) -> bool:
    """Whether an op may share an elementwise kernel with others."""
    row = find(name)
    return (
        row is not None and row.call is None and (row.launch is not None or (row.emit is not None and row.move is None))
    )


def kernel_region(
    ops: Sequence[tuple[OpView, Sequence[Any]]],
    operands: Mapping[Any, Operand],
    results: Sequence[tuple[Any, TensorType]],
    storage: Sequence[Storage | None] | None = None,
) -> Kernel | Reject:
    """Build the kernel of a region, or say which op refused and why; arguments as for `emit_region`."""
    stored = storage if storage is not None else [None] * len(results)
    view = ops[-1][0] if ops else OpView("hipdnn.launch", (), ())  # a copy yields its operand
    try:
        row = find(view.name)
        if len(ops) == 1 and row is not None and row.call is not None:
            return _call(row.call(view), view, operands, results, ops[0][1], stored)
        builder = ElementwiseBuilder(_space(results))
        for index, (key, operand) in enumerate(operands.items()):
            builder.bind(key, operand, index)
        for view, keys in ops:
            row = find(view.name)
            emission = None if row is None or not is_elementwise(view.name) else row.launch or row.emit
            if emission is None:
                return Reject(view.label, NO_ROW, "no kernel computes it", view.node)
            made = emission(builder, view)
            for key, kind, value in zip(keys, view.results, made if isinstance(made, list) else [made], strict=False):
                builder.define(key, value, kind)
        for index, (key, kind) in enumerate(results):
            builder.store(key, kind, stored[index], index)
        return Kernel(ELEMENTWISE, builder.tensors, {"code": builder.code})
    except Refusal as refusal:
        return Reject(view.label, refusal.rule, refusal.reason, view.node)


def _space(results: Sequence[tuple[Any, TensorType]]) -> Dims:
    """The positions that an elementwise kernel computes: those of its results."""
    shapes = [kind.static_dims() for _, kind in results]
    return max(shapes, key=lambda dims: (math.prod(dims), len(dims))) or (1,)


def _call(
    call: Call,
    op: OpView,
    operands: Mapping[Any, Operand],
    results: Sequence[tuple[Any, TensorType]],
    keys: Sequence[Any],
    storage: Sequence[Storage | None],
) -> Kernel:
    positions = {key: index for index, key in enumerate(operands)}
    tensors = []
    for item in call.operands:
        arg, dims = item if isinstance(item, tuple) else (item, item.type.static_dims())
        if arg.key not in positions:
            raise Refusal("operand", "an operand is a compile-time number, which has no buffer")
        operand = operands[arg.key]
        dtype = call.dtype or operand.dtype
        is_repeated = math.prod(dims) != math.prod(operand.dims)
        strides = seen_strides(operand.dims, operand.storage, operand.dims if is_repeated else dims)
        if is_repeated:
            strides = broadcast_strides(operand.dims, strides, dims)
        if call.function == ELEMENTWISE and call.results is not None:
            dims, strides = call.results[0], broadcast_strides(dims, strides, call.results[0])
        tensors.append(KernelTensor("in", positions[arg.key], dtype, dims, strides))
    places = {key: index for index, (key, _) in enumerate(results)}
    for number, (key, kind) in enumerate(zip(keys, op.results, strict=False)):
        if key not in places:
            raise Refusal("result", "a result has no readers")
        stored = storage[places[key]]
        dims = call.results[number] if call.results is not None else kind.static_dims()
        tensors.append(result_tensor(places[key], kind, stored, dims))
    return Kernel(call.function, tensors, dict(call.attributes))
