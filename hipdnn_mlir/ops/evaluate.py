"""Evaluates table rows on NumPy arrays, for what is constant at compile time."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from hipdnn_mlir_runtime.abi import Attribute, Descriptor, Pointwise, Reduce
from hipdnn_mlir_runtime.errors import NO_ROW, ModelError, Reject

from .emitter import Operand
from .graph import Graph, Node
from .regions import emit_region
from .spec import Call, Concat, Movement, OpView, Pad, Permute, Refusal, Reshape, Slice, TensorArg
from .strides import Dims
from .table import find

Array = np.ndarray[Any, np.dtype[Any]]


def _quotient(a: Array, b: Array) -> Array:
    """Integers are divided towards zero."""
    return np.divide(a, b) if a.dtype.kind not in "iu" else np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


_MODES: dict[Pointwise, Callable[..., Any]] = {
    Pointwise.ADD: np.add, Pointwise.SUB: np.subtract, Pointwise.MUL: np.multiply, Pointwise.DIV: _quotient, Pointwise.NEG: np.negative,
    Pointwise.SQRT: np.sqrt, Pointwise.RSQRT: lambda x: 1 / np.sqrt(x), Pointwise.RECIPROCAL: np.reciprocal, Pointwise.EXP: np.exp,
    Pointwise.LOG: np.log, Pointwise.ABS: np.abs, Pointwise.IDENTITY: lambda x: x, Pointwise.MAX: np.maximum, Pointwise.MIN: np.minimum,
    Pointwise.CEIL: np.ceil, Pointwise.FLOOR: np.floor, Pointwise.SIN: np.sin, Pointwise.TAN: np.tan, Pointwise.TANH_FWD: np.tanh,
    Pointwise.CMP_EQ: np.equal, Pointwise.CMP_NEQ: np.not_equal, Pointwise.CMP_LT: np.less, Pointwise.CMP_LE: np.less_equal,
    Pointwise.CMP_GT: np.greater, Pointwise.CMP_GE: np.greater_equal, Pointwise.LOGICAL_AND: np.logical_and,
    Pointwise.LOGICAL_OR: np.logical_or, Pointwise.LOGICAL_NOT: np.logical_not, Pointwise.RELU_FWD: lambda x: np.maximum(x, 0),
    Pointwise.SIGMOID_FWD: lambda x: 1 / (1 + np.exp(-x)),
    Pointwise.BINARY_SELECT: lambda a, b, where: np.where(where, a, b),
}  # fmt: skip
_REDUCTIONS: dict[Reduce, Callable[..., Any]] = {
    Reduce.ADD: np.sum, Reduce.MUL: np.prod, Reduce.MIN: np.min, Reduce.MAX: np.max, Reduce.AVG: np.mean,
    Reduce.AMAX: lambda x, **axes: np.max(np.abs(x), **axes), Reduce.NORM1: lambda x, **axes: np.sum(np.abs(x), **axes),
    Reduce.NORM2: lambda x, **axes: np.sqrt(np.sum(x * x, **axes)),
}  # fmt: skip
_PLAIN = frozenset({Attribute.POINTWISE_MODE, Attribute.POINTWISE_MATH_PREC})
_BITS: dict[str, Callable[..., Array]] = {
    "torch.aten.bitwise_and.Tensor": np.bitwise_and,
    "torch.aten.bitwise_xor.Tensor": np.bitwise_xor,
    "torch.aten.bitwise_right_shift.Tensor": np.right_shift,
}
"""Operations on integers that hipDNN has not, and the codes of packed weights need."""


def prepare(op: OpView) -> Movement | Graph | Callable[..., Array] | Reject:
    """How the op would be evaluated, without touching data; a Reject where it is not."""
    row = find(op.name)
    if row is None:
        return Reject(op.name, NO_ROW, "the op table has no row for it", op.node)
    if row.move is not None:
        try:
            return row.move(op)
        except Refusal as refusal:
            if row.call is None:
                return Reject(op.name, refusal.rule, refusal.reason, op.node)
    if op.name in _BITS:
        return _BITS[op.name]
    if row.call is not None and (indexing := _indexing(op, row.call)) is not None:
        return indexing
    operands = {arg.key: Operand(arg.type.static_dims(), arg.type.dtype) for arg in _tensors(op) if arg.type.is_static}
    graph = emit_region([(op, ["result"])], operands, [("result", op.results[0])])
    if isinstance(graph, Graph) and any(_function(node) is None for node in graph.nodes):
        return Reject(op.name, "constant", "not evaluated at compile time", op.node)
    return graph


def evaluate(op: OpView, arrays: Mapping[Any, Array]) -> Array | Reject:
    """The op's first result.

    Args:
        op: the op; every tensor argument's key is in `arrays` or the argument is a known scalar.
        arrays: SSA key -> array of the argument's dims and dtype.

    Returns:
        An array of the result's dims and dtype, or why the op is not evaluated here.
    """
    plan = prepare(op)
    if isinstance(plan, Reject):
        return plan
    if isinstance(plan, Graph):
        result = _compute(op, plan, arrays)
    elif isinstance(plan, Movement):
        result = _move(plan, op, arrays)
    else:
        result = plan(*(_array(arg, arrays) for arg in op.args if isinstance(arg, TensorArg)))
    return result.reshape(op.results[0].static_dims())


def _indexing(op: OpView, call: Callable[[OpView], Call]) -> Callable[..., Array] | None:
    """What computes an op that takes or puts elements by indices; None for others."""
    try:
        made = call(op)
    except Refusal:
        return None
    function = _INDEXING.get(made.function)
    in_order = made.operands == [arg for arg in op.args if isinstance(arg, TensorArg)]
    is_plain = in_order and made.attributes.get("reduction", "none") == "none"
    return partial(function, op.node, made.attributes) if function is not None and is_plain else None


def _checked(node: str, indices: Array, size: int) -> Array:
    if np.any((indices < -size) | (indices >= size)):
        raise ModelError("an index is out of range", where=node, expected=f"{-size} to {size - 1}")
    return indices


def _scattered(node: str, attributes: Mapping[str, Any], data: Array, indices: Array, updates: Array) -> Array:
    axis, made = attributes["axis"], data.copy()
    np.put_along_axis(_reached(made, axis, indices), _checked(node, indices, data.shape[axis]), updates, axis)
    return made


def _reached(data: Array, axis: int, indices: Array) -> Array:
    """What indices along an axis can name: they may have fewer of the other dims' elements."""
    return data[tuple(slice(None) if at == axis else slice(n) for at, n in enumerate(indices.shape))]


def _gathered_elements(node: str, attributes: Mapping[str, Any], data: Array, indices: Array) -> Array:
    axis = attributes["axis"]
    return np.take_along_axis(_reached(data, axis, indices), _checked(node, indices, data.shape[axis]), axis)


def _gathered(node: str, attributes: Mapping[str, Any], data: Array, indices: Array) -> Array:
    axis = attributes["axis"]
    taken: Array = np.take(data, _checked(node, indices, data.shape[axis]), axis)
    return taken


def _gathered_slices(node: str, attributes: Mapping[str, Any], data: Array, indices: Array) -> Array:
    first = attributes["batch_dims"]
    others = (1,) * (indices.ndim - 1 - first)
    batches = [at.reshape(*at.shape, *others) for at in np.ogrid[tuple(map(slice, indices.shape[:first]))]]
    places = [_checked(node, indices[..., at], data.shape[first + at]) for at in range(indices.shape[-1])]
    taken: Array = data[(*batches, *places)]
    return taken


_INDEXING: dict[str, Callable[..., Array]] = {
    "scatter_elements": _scattered, "gather": _gathered, "gather_elements": _gathered_elements, "gather_nd": _gathered_slices,
}  # fmt: skip
"""By the kernel that does it in a run: positions are gathered from tables, which are written to when PyTorch assigns to a slice."""


def _array(arg: TensorArg, arrays: Mapping[Any, Array]) -> Array:
    return arrays[arg.key] if arg.scalar is None else np.asarray(arg.scalar, arg.type.dtype.numpy)


def _tensors(op: OpView) -> list[TensorArg]:
    return [arg for arg in op.args if isinstance(arg, TensorArg) and arg.scalar is None]


def _move(move: Movement, op: OpView, arrays: Mapping[Any, Array]) -> Array:
    x = arrays[op.args[0].key] if isinstance(op.args[0], TensorArg) else None
    match move:
        case Reshape(dims) if x is not None:
            return x.reshape(dims)
        case Permute(order) if x is not None:
            return x.transpose(order)
        case Slice(offsets, sizes, steps) if x is not None:
            return x[
                tuple(
                    slice(o, o + (n - 1) * s + 1, s) if n else slice(0, 0)
                    for o, n, s in zip(offsets, sizes, steps, strict=True)
                )
            ]
        case Pad(low, high, value) if x is not None:
            return np.pad(x, tuple(zip(low, high, strict=True)), constant_values=value)
        case Concat(axis):
            return np.concatenate([arrays[part.key] for part in op.args[0]], axis)
    raise Refusal("operand", f"{op.name} without a tensor operand")


def _compute(op: OpView, graph: Graph, arrays: Mapping[Any, Array]) -> Array:
    tensors = list({arg.key: None for arg in _tensors(op)})
    values: dict[int, Array] = {}
    for index, tensor in enumerate(graph.tensors):
        if tensor.operand is not None:
            dense = np.ascontiguousarray(arrays[tensors[tensor.operand]])
            strides = [step * dense.itemsize for step in tensor.strides]  # a row may read an operand transposed
            values[index] = np.ndarray(tensor.dims, dense.dtype, dense, strides=strides)
        elif tensor.value is not None:
            values[index] = np.frombuffer(tensor.value, tensor.dtype.numpy).reshape(tensor.dims)
    with np.errstate(all="ignore"):  # infinities and NaN are what a run would give
        for node in graph.nodes:
            _run(graph, node, values)
    return values[next(i for i, t in enumerate(graph.tensors) if t.result == 0)]


def _function(node: Node) -> Callable[..., Any] | None:
    """What computes a node of arrays and the dims of its result; None where it is not evaluated."""
    stated = {name: value for name, _, value in node.attributes}
    if node.type == Descriptor.OPERATION_POINTWISE_DESCRIPTOR and stated.keys() <= _PLAIN:
        mode = _MODES.get(Pointwise(node.get(Attribute.POINTWISE_MODE)))
        return None if mode is None else partial(_elementwise, mode)
    if node.type == Descriptor.OPERATION_REDUCTION_DESCRIPTOR:
        reduce = _REDUCTIONS.get(Reduce(node.get(Attribute.REDUCTION_OPERATOR)))
        return None if reduce is None else partial(_reduced, reduce)
    return _product if node.type == Descriptor.OPERATION_MATMUL_DESCRIPTOR else None


def _elementwise(mode: Callable[..., Any], dims: Dims, *operands: Array) -> Array:
    return np.broadcast_to(mode(*operands), dims)


def _wide(x: Array) -> Array:
    """Floats in f64: sums of many 16-bit numbers are none of theirs."""
    return x if x.dtype.kind in "biu" else x.astype(np.float64)


def _reduced(reduce: Callable[..., Any], dims: Dims, x: Array) -> Array:
    axes = tuple(axis for axis, size in enumerate(dims) if size == 1 and x.shape[axis] != 1)
    return np.asarray(reduce(_wide(x), axis=axes, keepdims=True))


def _product(dims: Dims, a: Array, b: Array) -> Array:
    return np.broadcast_to(_wide(a) @ _wide(b), dims)


def _run(graph: Graph, node: Node, values: dict[int, Array]) -> None:
    function = _function(node)
    if function is None:
        raise ValueError("prepare lets only nodes through that are evaluated")
    output = next(iter(node.outputs.values()))
    tensor = graph.tensors[output]
    result = function(tensor.dims, *(values[index] for index in node.inputs.values()))
    values[output] = result.astype(tensor.dtype.numpy, copy=False)
