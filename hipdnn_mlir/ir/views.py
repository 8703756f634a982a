"""Types of memref views when the buffer under them changes its layout."""

from collections.abc import Iterator

from torch_mlir import ir
from torch_mlir.dialects import memref

from ..ops.strides import Dims, Strides, restride
from .dialect import RegionOp
from .types import memref_strides, strided_memref
from .view import producer, readers

RESHAPES = (memref.CollapseShapeOp, memref.ExpandShapeOp)
WHOLE_VIEWS = (memref.TransposeOp, *RESHAPES, memref.CastOp)
"""Views of all elements."""
VIEWS = (*WHOLE_VIEWS, memref.SubViewOp)


def view_type(view: ir.OpView, source: ir.MemRefType) -> ir.MemRefType | None:
    """The result type of a view op if its operand had memref type `source`, or None where no view can show it."""
    layout = memref_strides(source)
    if layout is None:
        return None
    strides, offset = layout
    dims, element = tuple(source.shape), source.element_type
    match view:
        case memref.CastOp():  # hides strides, which may be others now
            return source
        case memref.TransposeOp():
            order = permutation(view)
            return strided_memref(tuple(dims[a] for a in order), element, tuple(strides[a] for a in order), offset)
        case memref.SubViewOp():
            moved = offset + sum(o * s for o, s in zip(view.static_offsets, strides, strict=True))
            shown = tuple(a * b for a, b in zip(strides, view.static_strides, strict=True))
            return strided_memref(tuple(view.static_sizes), element, shown, moved)
    return _reshaped_type(source, tuple(view.result.type.shape), _reassociation(view))


def _reshaped_type(source: ir.MemRefType, shape: Dims, groups: list[list[int]]) -> ir.MemRefType | None:
    """The memref type that MLIR gives `source` collapsed or expanded to `shape`, or None where a collapse would need a copy."""
    layout = memref_strides(source)
    if layout is None:
        return None
    (strides, offset), dims = layout, tuple(source.shape)
    if len(shape) <= len(dims):
        new = None if restride(dims, strides, shape) is None else _collapsed(dims, strides, groups)
    else:
        new = _expanded(shape, strides, groups)
    if new is None:
        return None
    is_identity = not isinstance(source.layout, ir.StridedLayoutAttr)
    if is_identity or (offset == 0 and strides in ((), (1,))):  # MLIR keeps an identity layout, however it is written
        return ir.MemRefType.get(shape, source.element_type)
    return strided_memref(shape, source.element_type, new, offset)


def reshaped_back(reshape: memref.CollapseShapeOp | memref.ExpandShapeOp, destination: ir.Value) -> ir.Value | None:
    """`destination`, shaped like the result of a collapse or expand, seen in the shape of its operand; None where no view can show it.

    The view is made at the current insertion point.
    """
    shape = tuple(reshape.src.type.shape)
    kind = _reshaped_type(destination.type, shape, _reassociation(reshape))
    if kind is None:
        return None
    if isinstance(reshape, memref.ExpandShapeOp):
        return memref.collapse_shape(kind, destination, reshape.reassociation)
    return memref.expand_shape(kind, destination, reshape.reassociation, [], shape)


def _reassociation(reshape: memref.CollapseShapeOp | memref.ExpandShapeOp) -> list[list[int]]:
    return [[index.value for index in group] for group in reshape.reassociation]


def _collapsed(dims: Dims, strides: Strides, groups: list[list[int]]) -> Strides:
    """The strides MLIR gives collapsed dims: of the last one that is not 1 (where all are: of the first)."""
    lasts = [next((index for index in reversed(group) if dims[index] != 1), group[0]) for group in groups]
    return tuple(strides[index] for index in lasts)


def _expanded(dims: Dims, strides: Strides, groups: list[list[int]]) -> Strides:
    """The strides MLIR gives expanded dims: packed on the stride of the dim they come from."""
    result = [1] * len(dims)
    for stride, group in zip(strides, groups, strict=True):
        step = stride
        for index in reversed(group):
            result[index] = step
            step *= dims[index]
    return tuple(result)


def permutation(transpose: memref.TransposeOp) -> Dims:
    """The order of a memref.transpose."""
    return tuple(dim.position for dim in transpose.permutation.value.results)


def is_transpose(op: ir.OpView) -> bool:
    """Whether an op is a `linalg.transpose`; asked by name, because importing the dialect takes long and few models need it."""
    return str(op.operation.name) == "linalg.transpose"


def transpose_parts(transpose: ir.OpView) -> tuple[ir.Value, ir.Value, Dims]:
    """What a `linalg.transpose` reads and writes, and the order."""
    source, destination = transpose.operands
    return source, destination, tuple(transpose.attributes["permutation"])


def can_retype(value: ir.Value, source: ir.MemRefType, ignored: ir.OpView | None = None) -> bool:
    """Whether every use of `value` works when it has memref type `source`.

    Calls, copies and transposes read any strides; views must exist.
    """
    shown = [(value, source)]
    while shown:
        value, source = shown.pop()
        for user in readers(value):
            if user == ignored or isinstance(user, RegionOp | memref.CopyOp):
                continue
            if is_transpose(user) and user.operands[0] == value:
                continue
            kind = view_type(user, source) if isinstance(user, VIEWS) else None
            if kind is None:
                return False
            shown.append((user.result, kind))
    return True


def retype_uses(value: ir.Value) -> None:
    """Recompute the types of the views of a value whose type changed."""
    changed = [value]
    while changed:
        value = changed.pop()
        for user in readers(value):
            if isinstance(user, VIEWS):
                kind = view_type(user, value.type)
                if kind is None:
                    raise ValueError(f"{user.OPERATION_NAME} cannot show {value.type}")
                user.result.set_type(kind)
                changed.append(user.result)


def uses_through_views(value: ir.Value, views: tuple[type[ir.OpView], ...] = VIEWS) -> Iterator[ir.OpOperand]:
    """The uses of a buffer by anything but views, as it is or through views of the given kinds."""
    shown = [value]
    while shown:
        for use in shown.pop().uses:
            if isinstance(use.owner, views):
                shown.append(use.owner.result)
            else:
                yield use


def allocation(value: ir.Value) -> memref.AllocOp | None:
    """The memref.alloc behind a value that is an allocation, or the only view of one that permutes its dims; else None."""
    op = producer(value)
    while isinstance(op, memref.TransposeOp) and len(readers(op.in_)) == 1:
        op = producer(op.in_)
    return op if isinstance(op, memref.AllocOp) else None


def base(value: ir.Value) -> ir.Value:
    """The allocation or argument that a view is of."""
    while isinstance(view := producer(value), VIEWS):
        value = view.operands[0]
    return value


def is_contiguous(kind: ir.MemRefType) -> bool:
    """Whether a memref type is packed in C order."""
    layout = memref_strides(kind)
    if layout is None:
        return False
    step = 1
    for size, stride in reversed(list(zip(kind.shape, layout[0], strict=True))):
        if size != 1 and stride != step:
            return False
        step *= size
    return True
