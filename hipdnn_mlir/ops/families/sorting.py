"""Kernels that look along one dim: top-k, arg max and min, running sums and products."""

from ..registry import kernel
from ..spec import Call, OpView, Refusal, TensorArg
from .indexing import axis_of, indexed, refuse_booleans, tensor, tensors


@kernel("hipdnn.onnx.TopK", function="top_k", onnx=("TopK",), known=(1,))
def top_k(op: OpView) -> Call:
    """(x, k), axis, largest, sorted: k is the result's size along the axis."""
    x = tensor(op, 0)
    refuse_booleans(x)
    axis = axis_of(op.attributes.get("axis", -1), len(x.type.static_dims()))
    flags = {name: bool(op.attributes.get(name, 1)) for name in ("largest", "sorted")}
    return Call("top_k", [x], {"axis": axis, **flags})


@kernel("hipdnn.onnx.ArgMax", "hipdnn.onnx.ArgMin", function="arg_reduce", onnx=("ArgMax", "ArgMin"))
def arg_reduce(op: OpView) -> Call:
    """(x), axis, keepdims, select_last_index."""
    (x,) = tensors(op, 1)
    refuse_booleans(x)
    dims = x.type.static_dims()
    axis = axis_of(op.attributes.get("axis", 0), len(dims))
    mode = "max" if op.name.endswith("ArgMax") else "min"
    last = bool(op.attributes.get("select_last_index", 0))
    kept = tuple(1 if index == axis else size for index, size in enumerate(dims))
    return Call("arg_reduce", [x], {"axis": axis, "mode": mode, "select_last": last}, [kept])


@kernel(
    "hipdnn.onnx.CumSum",
    "hipdnn.onnx.CumProd",
    function="scan",
    onnx=("CumSum", "CumProd"),
    known=(1,),
    precision="wide",
)
def scan(op: OpView) -> Call:
    """(x, axis), exclusive, reverse."""
    x = tensor(op, 0)
    refuse_booleans(x)
    rank = len(x.type.static_dims())
    if isinstance(op.args[1], TensorArg) and rank > 1:
        raise Refusal("operand", "the axis has to be known at compile time")
    if not rank or (not isinstance(op.args[1], TensorArg) and len(op.args[1]) != 1):
        raise Refusal("operand", "expected one axis, of an operand that has any")
    axis = 0 if isinstance(op.args[1], TensorArg) else axis_of(op.args[1][0], rank)
    flags = {name: bool(op.attributes.get(name, 0)) for name in ("exclusive", "reverse")}
    return Call("scan", [x], {"axis": axis, "operator": "add" if op.name.endswith("Sum") else "mul", **flags})


@kernel("hipdnn.onnx.ReverseSequence", function="reverse_sequence", onnx=("ReverseSequence",))
def reverse_sequence(op: OpView) -> Call:
    """(x, lengths), batch_axis, time_axis."""
    axes = {name: int(op.attributes.get(name, default)) for name, default in (("batch_axis", 1), ("time_axis", 0))}
    return Call("reverse_sequence", indexed(op, 2), axes)
