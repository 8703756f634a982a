"""Types of memref views when the buffer under them changes its layout."""

from collections.abc import Collection, Iterator
from typing import Any

from torch_mlir import ir

from ..ops.strides import Dims, Strides, restride
from .dialect import REGIONS
from .types import memref_strides, strided_memref

RESHAPES = ("memref.collapse_shape", "memref.expand_shape")
VIEWS = ("memref.transpose", "memref.subview", *RESHAPES, "memref.cast")


def view_type(operation: Any, source: Any) -> Any | None:
    """The result type of a view op if its operand had memref type `source`, or None where no view can show it."""
    layout = memref_strides(source)
    if layout is None:
        return None
    strides, offset = layout
    dims, element = tuple(source.shape), source.element_type
    result = ir.MemRefType(operation.results[0].type)
    if operation.name == "memref.cast":  # hides strides, which may be others now
        return source
    if operation.name == "memref.transpose":
        order = permutation(operation)
        return strided_memref(tuple(dims[a] for a in order), element, tuple(strides[a] for a in order), offset)
    if operation.name == "memref.subview":
        offsets, steps = (_static(operation, name) for name in ("static_offsets", "static_strides"))
        moved = offset + sum(o * s for o, s in zip(offsets, strides, strict=True))
        return strided_memref(
            _static(operation, "static_sizes"),
            element,
            tuple(a * b for a, b in zip(strides, steps, strict=True)),
            moved,
        )
    return _reshaped_type(source, tuple(result.shape), _reassociation(operation))


def _reshaped_type(source: Any, shape: Dims, groups: list[list[int]]) -> Any | None:
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
    is_identity = not isinstance(ir.MemRefType(source).layout, ir.StridedLayoutAttr)
    if is_identity or (offset == 0 and strides in ((), (1,))):  # MLIR keeps an identity layout, however it is written
        return ir.MemRefType.get(list(shape), source.element_type)
    return strided_memref(shape, source.element_type, new, offset)


def reshaped_back(reshape: Any, destination: Any) -> Any | None:
    """`destination`, shaped like the result of a collapse or expand, seen in the shape of its operand; None where no view can show it.

    The view is made at the current insertion point.
    """
    shape = tuple(reshape.operands[0].type.shape)
    kind = _reshaped_type(destination.type, shape, _reassociation(reshape))
    if kind is None:
        return None
    attributes = {"reassociation": reshape.attributes["reassociation"]}
    if reshape.name == "memref.expand_shape":
        return ir.Operation.create(
            "memref.collapse_shape", results=[kind], operands=[destination], attributes=attributes
        ).result
    attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(shape))
    return ir.Operation.create(
        "memref.expand_shape", results=[kind], operands=[destination], attributes=attributes
    ).result


def _reassociation(operation: Any) -> list[list[int]]:
    groups = ir.ArrayAttr(operation.attributes["reassociation"])
    return [[int(ir.IntegerAttr(index).value) for index in ir.ArrayAttr(group)] for group in groups]


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


def permutation(operation: Any) -> tuple[int, ...]:
    """The order of a memref.transpose."""
    text = str(operation.attributes["permutation"])  # affine_map<(d0, d1) -> (d1, d0)>
    names = text.split("-> (")[1].split(")", maxsplit=1)[0].split(",")
    return tuple(int(name.strip()[1:]) for name in names if name.strip())


def _static(operation: Any, name: str) -> tuple[int, ...]:
    return tuple(ir.DenseI64ArrayAttr(operation.attributes[name]))


def can_retype(value: Any, source: Any, ignored: Any = None) -> bool:
    """Whether every use of `value` works when it has memref type `source`.

    Calls, copies and transposes read any strides; views must exist.
    """
    shown = [(value, source)]
    while shown:
        value, source = shown.pop()
        for use in value.uses:
            user = use.owner.operation
            if (ignored is not None and user == ignored) or user.name in (*REGIONS, "memref.copy"):
                continue
            if user.name == "linalg.transpose" and use.operand_number == 0:
                continue
            kind = view_type(user, source) if user.name in VIEWS else None
            if kind is None:
                return False
            shown.append((user.results[0], kind))
    return True


def retype_uses(value: Any) -> None:
    """Recompute the types of the views of a value whose type changed."""
    changed = [value]
    while changed:
        value = changed.pop()
        for user in [use.owner.operation for use in value.uses]:
            if user.name in VIEWS:
                kind = view_type(user, value.type)
                if kind is None:
                    raise ValueError(f"{user.name} cannot show {value.type}")
                user.results[0].set_type(kind)
                changed.append(user.results[0])


def uses_through_views(value: Any, views: Collection[str] = VIEWS) -> Iterator[Any]:
    """The uses of a buffer by anything but views, as it is or through views of the given kinds."""
    shown = [value]
    while shown:
        for use in shown.pop().uses:
            user = use.owner.operation
            if user.name in views:
                shown.append(user.results[0])
            else:
                yield use


def allocation(value: Any) -> Any | None:
    """The memref.alloc behind a value that is an allocation, or the only view of one that permutes its dims; else None."""
    while not isinstance(value.owner, ir.Block):
        operation = value.owner.operation
        if operation.name == "memref.alloc":
            return operation
        if operation.name != "memref.transpose" or len(list(operation.operands[0].uses)) != 1:
            return None
        value = operation.operands[0]
    return None


def base(value: Any) -> Any:
    """The allocation or argument that a view is of."""
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in VIEWS:
        value = value.owner.operation.operands[0]
    return value


def is_contiguous(kind: Any) -> bool:
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
