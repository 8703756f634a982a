"""Reductions of what is computed of each element, where torch-mlir's conversion rounds to f32, stops the process, or loses dims."""

from collections.abc import Sequence

from .call import DOUBLE, Call
from .registry import decomposes


def _axes(call: Call) -> list[int] | None:
    """The axes that are reduced, None where they are not known."""
    rank, operand = call.rank(call.need(0)), call.arg(1)
    given = call.attr("axes")
    if operand is not None:
        known = call.value(operand)
        if known is None:
            return None
        given = known.tolist()
    if not given and call.attr("noop_with_empty_axes", 0):
        return []
    return sorted(int(axis) % rank for axis in given) if given else [*range(rank)]


def _is_single(call: Call, x: str, axes: Sequence[int]) -> bool:
    """Whether each sum has one term."""
    return all(call.dims(x)[axis] == 1 for axis in axes)


def _summed(call: Call, terms: str, axes: Sequence[int]) -> str:
    """The sum of terms; nothing is added up where there is one."""
    keepdims = bool(call.attr("keepdims", 1))
    if _is_single(call, terms, axes):
        return terms if keepdims or not axes else call.squeeze(terms, *axes)
    return call.reduce("ReduceSum", terms, axes, keepdims)


@decomposes("ReduceSumSquare")
def sum_square(call: Call) -> Sequence[str | None] | None:
    """ReduceSumSquare.

    Source: ONNX, ReduceSumSquare-18.
    """
    x, axes = call.need(0), _axes(call)
    return None if axes is None else [_summed(call, call.op("Mul", x, x), axes)]


@decomposes("ReduceLogSum")
def log_sum(call: Call) -> Sequence[str | None] | None:
    """ReduceLogSum.

    Source: ONNX, ReduceLogSum-18.
    """
    axes = _axes(call)
    return None if axes is None else [call.op("Log", _summed(call, call.need(0), axes))]


@decomposes("ReduceL1", "ReduceL2")
def norm(call: Call) -> Sequence[str | None] | None:
    """ReduceL1 and ReduceL2 in f64 and of single elements; hipDNN has them for the rest.

    Source: ONNX, ReduceL1-18 and ReduceL2-18.
    """
    x, axes = call.need(0), _axes(call)
    if axes is None or not (call.kind(x) == DOUBLE or _is_single(call, x, axes)):
        return None
    if call.node.op_type == "ReduceL1":
        return [_summed(call, call.op("Abs", x), axes)]
    return [call.op("Sqrt", _summed(call, call.op("Mul", x, x), axes))]


@decomposes("ReduceLogSumExp")
def log_sum_exp(call: Call) -> Sequence[str | None] | None:
    """ReduceLogSumExp of single elements, which are the result.

    Source: ONNX, ReduceLogSumExp-18.
    """
    x, axes = call.need(0), _axes(call)
    return [_summed(call, x, axes)] if axes is not None and _is_single(call, x, axes) else None


@decomposes("ReduceProd")
def product(call: Call) -> Sequence[str | None] | None:
    """ReduceProd axis by axis, as torch has it.

    Source: ONNX, ReduceProd-18.
    """
    x, axes = call.need(0), _axes(call)
    if axes is None or len(axes) < 2:
        return None
    keepdims = bool(call.attr("keepdims", 1))
    for axis in reversed(axes):
        x = call.reduce("ReduceProd", x, [axis], keepdims)
    return [x]
