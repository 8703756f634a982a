"""Reading and writing at computed positions: gathers, scatters, and slices that run backwards."""

from typing import Any

from hipdnn_mlir_runtime.dtypes import BOOL, I32, I64

from ..registry import kernel, movement
from ..spec import Call, OpView, Refusal, Slice, TensorArg
from ..strides import Dims


def tensor(op: OpView, position: int) -> TensorArg:
    """A tensor operand."""
    arg = op.args[position] if position < len(op.args) else None
    if not isinstance(arg, TensorArg):
        raise Refusal("operand", f"operand {position} is {arg!r}, expected a tensor")
    return arg


def tensors(op: OpView, count: int) -> list[TensorArg]:
    """The first operands, all tensors of known sizes."""
    found = [tensor(op, position) for position in range(count)]
    for arg in found:
        arg.type.static_dims()
    return found


def given(op: OpView, position: int) -> TensorArg | None:
    """A tensor operand of known sizes that may be left out."""
    if position >= len(op.args) or op.args[position] is None:
        return None
    found = tensor(op, position)
    found.type.static_dims()
    return found


def refuse_booleans(arg: TensorArg) -> None:
    """Refuse what is no number."""
    if arg.type.dtype is BOOL:
        raise Refusal("dtype", "data of type bool, expected numbers")


def axis_of(number: Any, rank: int) -> int:
    """An axis that may count from the end."""
    if not isinstance(number, int) or not -rank <= number < rank:
        raise Refusal("attribute", f"axis {number} of a tensor of rank {rank}")
    return number % rank


def indexed(op: OpView, count: int) -> list[TensorArg]:
    """Operands of which the second holds indices."""
    found = tensors(op, count)
    if found[1].type.dtype not in (I32, I64):
        raise Refusal("dtype", f"indices of {found[1].type.dtype}")
    return found


def _indexed_by_rows(op: OpView, count: int) -> list[TensorArg]:
    """Operands of which the second holds rows of indices."""
    found = indexed(op, count)
    if not found[1].type.static_dims():
        raise Refusal("rank", "indices of rank 0, expected rows of them")
    return found


@movement("hipdnn.onnx.Gather", becomes="view where the index is one known number", onnx=("Gather",))
def gather_one(op: OpView) -> Slice:
    """(data, index), axis: one known index of a dim, which the result does not have."""
    data, index = tensors(op, 2)
    dims = data.type.static_dims()
    axis, at = axis_of(op.attributes.get("axis", 0), len(dims)), index.scalar
    if not isinstance(at, int):
        raise Refusal("operand", "the index is not a single number known at compile time")
    if not -dims[axis] <= at < dims[axis]:
        raise Refusal("attribute", f"index {at} of a dim of {dims[axis]}")
    offsets, sizes = [0] * len(dims), list(dims)
    offsets[axis], sizes[axis] = at % dims[axis], 1
    return Slice(tuple(offsets), tuple(sizes), (1,) * len(dims))


@kernel("hipdnn.onnx.Gather", function="gather", onnx=("Gather",))
def gather(op: OpView) -> Call:
    """(data, indices), axis: slices of data at the indices; an embedding is this on a table of weights."""
    data, indices = indexed(op, 2)
    axis = axis_of(op.attributes.get("axis", 0), len(data.type.dims))
    return Call("gather", [data, indices], {"axis": axis})


@kernel("hipdnn.onnx.GatherElements", function="gather_elements", onnx=("GatherElements",))
def gather_elements(op: OpView) -> Call:
    """(data, indices), axis: the result has the dims of the indices, or they broadcast to its."""
    data, indices = indexed(op, 2)
    dims = op.results[0].static_dims()
    shown = indices if indices.type.static_dims() == dims else (indices, dims)
    return Call("gather_elements", [data, shown], {"axis": axis_of(op.attributes.get("axis", 0), len(data.type.dims))})


@movement("hipdnn.onnx.GatherND", becomes="view where it takes all there is, from dims of one", onnx=("GatherND",))
def gather_nd_of_one(op: OpView) -> Slice:
    """(data, indices), batch_dims: the data, where each index can only be 0."""
    data, indices = _indexed_by_rows(op, 2)
    dims, depth = data.type.static_dims(), indices.type.static_dims()[-1]
    first = int(op.attributes.get("batch_dims", 0))
    if any(size != 1 for size in dims[first : first + depth]) or op.results[0].static_dims() != dims:
        raise Refusal("operand", "it takes from dims of more than one, or other dims than those of the data")
    return Slice((0,) * len(dims), dims, (1,) * len(dims))


@kernel("hipdnn.onnx.GatherND", function="gather_nd", onnx=("GatherND",))
def gather_nd(op: OpView) -> Call:
    """(data, indices), batch_dims: rows of indices name slices of data."""
    data, indices = _indexed_by_rows(op, 2)
    return Call("gather_nd", [data, indices], {"batch_dims": int(op.attributes.get("batch_dims", 0))})


@kernel(
    "hipdnn.onnx.ScatterElements",
    "hipdnn.onnx.Scatter",
    function="scatter_elements",
    onnx=("ScatterElements", "Scatter"),
)
def scatter_elements(op: OpView) -> Call:
    """(data, indices, updates), axis, reduction: data with updates at the indices."""
    operands = indexed(op, 3)
    axis = axis_of(op.attributes.get("axis", 0), len(operands[0].type.dims))
    return Call("scatter_elements", operands, {"axis": axis, "reduction": _reduction(op, operands[0])})


@kernel("hipdnn.onnx.ScatterND", function="scatter_nd", onnx=("ScatterND",))
def scatter_nd(op: OpView) -> Call:
    """(data, indices, updates), reduction: data with slices replaced at the rows of indices."""
    operands = _indexed_by_rows(op, 3)
    return Call("scatter_nd", operands, {"reduction": _reduction(op, operands[0])})


def _reduction(op: OpView, data: TensorArg) -> str:
    found = str(op.attributes.get("reduction", "none"))
    if found != "none":
        refuse_booleans(data)
    if found not in ("none", "add", "mul", "min", "max"):
        raise Refusal("attribute", f"reduction {found!r}")
    return found


def _ranges(op: OpView) -> tuple[Dims, Dims]:
    """Per dim the first position and the step of an ONNX Slice."""
    dims = tensor(op, 0).type.static_dims()
    starts, axes, steps = op.args[1], *[op.args[i] if i < len(op.args) else None for i in (3, 4)]
    for given in (starts, axes, steps):
        if isinstance(given, TensorArg):
            raise Refusal("operand", "starts, axes and steps have to be known at compile time")
    if len({len(given) for given in (starts, axes, steps) if given}) > 1:
        raise Refusal("operand", f"starts {starts}, axes {axes} and steps {steps}, expected as many of each")
    firsts, strides = [0] * len(dims), [1] * len(dims)
    for position, start in enumerate(starts):
        axis = axis_of(axes[position] if axes else position, len(dims))
        step = steps[position] if steps else 1
        size = dims[axis]
        from_start = start + size if start < 0 else start
        firsts[axis] = min(max(from_start, 0), size if step > 0 else size - 1)
        strides[axis] = step
    for first, step, count, size in zip(firsts, strides, op.results[0].static_dims(), dims, strict=True):
        if count and not 0 <= first + (count - 1) * step < size:  # ends are data, and the result's size a declaration
            raise Refusal("shape", f"{count} elements of {size}, from {first} on in steps of {step}")
    return tuple(firsts), tuple(strides)


@movement("hipdnn.onnx.Slice", becomes="view where steps are positive", onnx=("Slice", "Split"), known=(1, 2, 3, 4))
def slice_forward(op: OpView) -> Slice:
    """(data, starts, ends, axes, steps): sizes follow from the result."""
    firsts, steps = _ranges(op)
    if min(steps, default=1) < 1:
        raise Refusal("attribute", f"steps {steps}, expected positive ones")
    sizes = op.results[0].static_dims()
    if 0 in sizes:  # an empty slice may start past the end, which tensor.extract_slice refuses
        firsts = tuple(0 for _ in firsts)
    return Slice(firsts, sizes, steps)


@kernel("hipdnn.onnx.Slice", function="slice", onnx=("Slice",))
def slice_backward(op: OpView) -> Call:
    """(data, starts, ends, axes, steps), some steps negative."""
    firsts, steps = _ranges(op)
    return Call("slice", [tensor(op, 0)], {"starts": list(firsts), "steps": list(steps)})
