"""hipdnn-gather-rows: rows of a value that several copies bring into another order are gathered once."""

from dataclasses import dataclass
from math import prod

import numpy as np
from torch_mlir import ir
from torch_mlir.dialects import func, torch

from ..ir.blocks import erase_dead, functions, operations
from ..ir.constants import tensor_operands
from ..ir.literals import literal
from ..ir.module_pass import module_pass
from ..ir.types import is_tensor, tensor_type, torch_tensor
from ..ir.view import producer, readers
from ..ir.view_chains import dims_of, movement_of, reshaped
from ..ops.evaluate import Array
from ..ops.spec import Concat, Movement, Permute, Reshape, Slice
from ..targets.table import find_target

_MOST_ELEMENTS = 1 << 24
_MOST_ROWS = 1 << 20
_MOVES: tuple[tuple[type[Movement], ...], ...] = (Reshape, Permute, Slice, Concat), (Slice, Concat)
"""What lies between a source and its rows; the second where those of the first are in an order that splits rows."""
_LEAST_BYTES = 16
"""Of a row: smaller ones are not read at once."""


@module_pass("hipdnn-gather-rows")
def gather_rows(module: ir.Operation, *, target: str = "host") -> None:
    """Put one gather in the place of a concatenation of parts of one value, with the reshapes, transposes and parts around it, on GPUs.

    Windows that are shifted (Swin) are such concatenations: two along each dim, then a transpose, each of which is a copy. Merged
    patches are one of four parts.

    Before: `%a = torch.aten.slice.Tensor %x, 1, 3, 8`; `%b = torch.aten.slice.Tensor %x, 1, 0, 3`; `%y = torch.aten.cat [%a, %b], 1`, where
    `%x` is [2, 8, 96].
    After: `%y = torch.aten.index_select %x, 1, [3, 4, 5, 6, 7, 0, 1, 2]`.

    Args:
        module: the module operation.
        target: a GPU, or nothing changes.
    """
    if find_target(target).architecture is None:
        return
    for function in functions(module):
        for op in reversed(operations(function)):
            if isinstance(op, torch.AtenCatOp) and readers(op.result):
                _gather(op)
        erase_dead(function)


@dataclass(frozen=True)
class _Rows:
    """Rows of `length` elements, of which each of `batch` images has them in one order."""

    batch: int
    length: int
    order: Array


def _gather(op: torch.AtenCatOp) -> None:
    last = _last(op)
    result = last.results[0]
    for moves in _MOVES:
        source = _source(op.result, moves)
        if source is None or prod(dims_of(source)) > _MOST_ELEMENTS:
            return
        rows = _rows(_order(result, source), dims_of(source))
        if rows is not None and _is_worth_it(rows, source):
            break
    else:
        return
    with ir.InsertionPoint(last), last.location:
        result.replace_all_uses_with(reshaped(_gathered(source, rows), dims_of(result)))


def _is_worth_it(rows: _Rows, source: ir.Value) -> bool:
    return len(rows.order) <= _MOST_ROWS and rows.length * tensor_type(source.type).dtype.bytes >= _LEAST_BYTES


def _gathered(source: ir.Value, rows: _Rows) -> ir.Value:
    """The rows of a source in their order, at the current insertion point."""
    count = prod(dims_of(source)) // (rows.batch * rows.length)
    seen = reshaped(source, (rows.batch, count, rows.length))
    if np.array_equal(rows.order, np.arange(count)):
        return seen
    kind = torch_tensor((rows.batch, len(rows.order), rows.length), tensor_type(source.type).dtype)
    return torch.aten_index_select(kind, seen, torch.constant_int(1), literal(rows.order))


def _moved(value: ir.Value) -> tuple[Movement, list[ir.Value]] | None:
    """How a value's elements are those of others, and which; None where it is computed, or how is not known."""
    op = producer(value)
    move = movement_of(op)
    if op is None or not isinstance(move, _MOVES[0]):
        return None
    values = tensor_operands(op)
    return (move, values) if all(tensor_type(operand.type).is_static for operand in (value, *values)) else None


def _source(value: ir.Value, moves: tuple[type[Movement], ...]) -> ir.Value | None:
    """The value that all elements are of, before movements of some kinds; None where there are several."""
    sources, pending, seen = set[ir.Value](), [value], set[ir.Value]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        found = _moved(value)
        if found is None or not isinstance(found[0], moves):
            sources.add(value)
        else:
            pending += found[1]
    return sources.pop() if len(sources) == 1 else None


def _last(op: ir.OpView) -> ir.OpView:
    """The last of the reshapes and transposes behind an op, which nothing else reads."""
    while True:
        reading = readers(op.results[0])
        if len(reading) != 1 or isinstance(reading[0], func.ReturnOp):
            return op
        (behind,) = reading
        is_alone = len([operand for operand in behind.operands if is_tensor(operand.type)]) == 1
        if not is_alone or not isinstance(movement_of(behind), Reshape | Permute):
            return op
        op = behind


def _order(value: ir.Value, source: ir.Value) -> Array:
    """The numbers of the source's elements that a value has, in C order."""
    known = {source: np.arange(prod(dims_of(source)), dtype=np.int32).reshape(dims_of(source))}
    pending = [value]
    while pending:
        found = _moved(pending[-1])
        if pending[-1] in known or found is None:
            pending.pop()
            continue
        move, values = found
        missing = [operand for operand in values if operand not in known]
        if missing:
            pending += missing
        else:
            known[pending.pop()] = _applied(move, [known[operand] for operand in values])
    return known[value]


def _applied(move: Movement, parts: list[Array]) -> Array:
    match move:
        case Reshape():
            return parts[0].reshape(move.dims)
        case Permute():
            return parts[0].transpose(move.order)
        case Slice():
            steps = zip(move.offsets, move.sizes, move.steps, strict=True)
            return parts[0][tuple(slice(first, first + (size - 1) * step + 1, step) for first, size, step in steps)]
        case Concat():
            return np.concatenate(parts, move.axis)
    raise TypeError(move)


def _rows(elements: Array, dims: tuple[int, ...]) -> _Rows | None:
    """Elements as rows that are as long as the source's inner dims allow, of as many images as its outer dims allow."""
    flat = elements.reshape(-1)
    for axis in range(1, len(dims)):
        length = prod(dims[axis:])
        if len(flat) % length:
            continue
        lines = flat.reshape(-1, length)
        if np.any(lines[:, 0] % length) or np.any(lines != lines[:, :1] + np.arange(length, dtype=flat.dtype)):
            continue
        batch, order = _images(lines[:, 0] // length, dims[:axis])
        return _Rows(batch, length, order.astype(np.int64))
    return None


def _images(rows: Array, dims: tuple[int, ...]) -> tuple[int, Array]:
    """Of how many images all have the same order, and that."""
    for axis in reversed(range(len(dims))):
        batch, each = prod(dims[:axis]), prod(dims[axis:])
        if len(rows) % batch:
            continue
        images = rows.reshape(batch, -1)
        if np.array_equal(images, images[0] + each * np.arange(batch, dtype=rows.dtype)[:, None]):
            return batch, images[0]
    return 1, rows
