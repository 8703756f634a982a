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
    return sorted(call.axis(call.need(0), int(axis)) for axis in given) if given else [*range(rank)]


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


@decomposes("CumSum", "CumProd")
def cumulative(call: Call) -> Sequence[str | None] | None:
    """CumSum and CumProd along an axis that only the run knows: along each, of which one is chosen.

    Source: ONNX, CumSum-14 and CumProd-26.
    """
    x, axis = call.need(0), call.need(1)
    rank = call.rank(x)
    if rank < 2 or call.is_of_sizes(axis):
        return None
    flags = {name: call.attr(name) for name in ("exclusive", "reverse")}
    kind, chosen = call.kind(axis), call.reshape(axis)
    results = [call.op(call.node.op_type, x, call.const(index, kind), **flags) for index in range(rank)]
    found = results[0]
    for index in range(1, rank):
        is_here = call.op("Or", *(call.op("Equal", chosen, call.const(place, kind)) for place in (index, index - rank)))
        found = call.op("Where", is_here, results[index], found)
    return [found]
