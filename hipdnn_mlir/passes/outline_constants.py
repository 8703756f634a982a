"""hipdnn-outline-constants: move arithmetic on constants out of the program, to be evaluated once at compile time."""

import logging
import math
from collections.abc import Mapping, Sequence

from torch_mlir import ir
from torch_mlir.dialects import func, torch

from hipdnn_mlir_runtime.errors import Reject

from ..ir.blocks import clone_into, erase_dead, functions, operations
from ..ir.constants import CONSTANT, CONSTANTS_FUNCTION, STAYS, VARIES, constant_name, tensor_operands
from ..ir.module_pass import module_pass
from ..ir.types import is_tensor, tensor_type
from ..ir.view import lookup, producer, readers
from ..ir.view_chains import is_copied
from ..ops.evaluate import prepare
from ..ops.row import OpRow, moves

logger = logging.getLogger(__name__)

MAX_GROWTH = 8
"""How many times larger a constant may be than the weights that it is made of: numbers of 4 bits may become floats."""
SMALL_BYTES = 1 << 22
"""Constants up to this size are made whatever they are made of."""


@module_pass("hipdnn-outline-constants")
def outline_constants(module: ir.Operation) -> None:
    """Move every op whose operands are constant into `@hipdnn_constants`; its results enter `@main` as constant arguments.

    Constant arguments carry `hipdnn.constant = "name"`; their data stays outside the IR. Literals with dims become constants too, and so
    do returned ones. A view of a weight stays where it is (it costs nothing) unless arithmetic needs it. So does what would make a constant
    many times larger than the weights that it is made of: it is computed in each run.

    Before: `func.func @main(%x, %w {hipdnn.constant = "w"})` with `%v = torch.aten.mul.Tensor %w, %s`.
    After: `func.func private @hipdnn_constants(%w) -> ...` holds the product; `@main(%x, %v {hipdnn.constant = "w.folded"})`.
    """
    for function in functions(module):
        if function.name.value != CONSTANTS_FUNCTION:
            _outline(module, function)


def _outline(module: ir.Operation, function: func.FuncOp) -> None:
    # value -> whether arithmetic made it (True) or it is a leaf or a view of one (False)
    constant = dict.fromkeys(_constant_arguments(function), False)
    sources: dict[ir.Value, frozenset[ir.Value]] = {value: frozenset({value}) for value in constant}
    hoisted: dict[ir.OpView, None] = {}
    for op in operations(function):
        kind = _classify(op, constant)
        if kind is not None:
            made_of = frozenset().union(*(sources.get(value, ()) for value in tensor_operands(op)))
            if kind and _is_too_large(op, made_of) and not _is_absorbed(op, made_of, sources, constant):
                logger.info("%s is computed in each run: it is many times larger than its constants", op.operation.name)
                continue
            sources[op.results[0]] = made_of or frozenset(op.results[:1])
            hoisted[op] = None
            constant[op.results[0]] = kind
    results = [op.results[0] for op in hoisted]
    used = [value for value in results if constant[value] and any(op not in hoisted for op in readers(value))]
    if used:
        _move(module, function, list(hoisted), used)
    erase_dead(function)
    _drop_unused_constants(function)


def _constant_arguments(function: func.FuncOp) -> list[ir.Value]:
    return [argument for argument in function.arguments if constant_name(argument) is not None]


def _classify(op: ir.OpView, constant: Mapping[ir.Value, bool]) -> bool | None:
    """None where the op is not constant; else whether its result has to be stored."""
    if len(op.results) != 1 or not is_tensor(op.results[0].type):
        return None
    if isinstance(op, torch.ValueTensorLiteralOp):
        stored = tensor_type(op.result.type).dims or VARIES in op.attributes
        return True if stored or any(map(_needs_buffer, readers(op.result))) else None
    if VARIES in op.attributes or STAYS in op.attributes:
        return None
    tensors = tensor_operands(op)
    if not tensors or not all(value in constant or _is_scalar_literal(value) for value in tensors):
        return None
    found = lookup(op)
    if isinstance(found, Reject) or isinstance(prepare(found[1]), Reject):
        return None
    return _stores(found[0]) or is_copied(op) or any(constant.get(value, True) for value in tensors)


def _is_too_large(op: ir.OpView, made_of: frozenset[ir.Value]) -> bool:
    """Whether a constant is many times larger than what it is made of."""
    size = _bytes(op.results[0])
    return not isinstance(op, torch.ValueTensorLiteralOp) and size > max(
        SMALL_BYTES, MAX_GROWTH * sum(map(_bytes, made_of))
    )


def _is_absorbed(
    op: ir.OpView,
    made_of: frozenset[ir.Value],
    sources: Mapping[ir.Value, frozenset[ir.Value]],
    constant: Mapping[ir.Value, bool],
) -> bool:
    """Whether all that reads a large constant makes others of it and of constants as large: a filter in the middle of a larger one."""
    known = {**constant, op.results[0]: True}
    for reader in readers(op.results[0]):
        if _classify(reader, known) is None:
            return False
        if _is_too_large(reader, made_of.union(*(sources.get(value, ()) for value in tensor_operands(reader)))):
            return False
    return True


def _bytes(value: ir.Value) -> int:
    kind = tensor_type(value.type)
    return math.prod(kind.static_dims()) * kind.dtype.bytes if kind.is_static else 0


def _needs_buffer(reader: ir.OpView) -> bool:
    """Whether an op reads numbers from buffers only: a kernel of its own does, and the caller."""
    if isinstance(reader, func.ReturnOp):
        return True
    found = lookup(reader)
    return not isinstance(found, Reject) and found[0].call is not None and not moves(*found)


def _stores(row: OpRow) -> bool:
    """Views of weights are free at run time; everything else is made once, at compile time."""
    return row.move is None or not row.becomes.startswith("view")


def _is_scalar_literal(value: ir.Value) -> bool:
    return isinstance(producer(value), torch.ValueTensorLiteralOp)


def _move(module: ir.Operation, function: func.FuncOp, hoisted: list[ir.OpView], used: list[ir.Value]) -> None:
    arguments = _constant_arguments(function)
    names = _fresh_names(function, hoisted, used)
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), function.location:
        kind = ([argument.type for argument in arguments], [value.type for value in used])
        created = func.FuncOp(CONSTANTS_FUNCTION, kind, visibility="private")
        created.arg_attrs = [_constant_attribute(constant_name(argument) or "") for argument in arguments]
        created.result_attrs = ir.ArrayAttr.get([_constant_attribute(name) for name in names])
    block = created.add_entry_block([function.location] * len(arguments))
    mapping = dict(zip(arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block), function.location:
        for op in hoisted:
            clone_into(op, mapping)
        func.ReturnOp([mapping[value] for value in used])
    erase_dead(created)
    _add_arguments(function, used, names)


def _constant_attribute(name: str) -> ir.DictAttr:
    return ir.DictAttr.get({CONSTANT: ir.StringAttr.get(name)})


def _fresh_names(function: func.FuncOp, hoisted: list[ir.OpView], used: list[ir.Value]) -> list[str]:
    taken = {constant_name(argument) for argument in function.arguments}
    origins = _origins(function, hoisted)
    names = []
    for value in used:
        base = origins.get(value, "literal")
        name, count = f"{base}.folded", 1
        while name in taken:
            name, count = f"{base}.folded.{count}", count + 1
        taken.add(name)
        names.append(name)
    return names


def _origins(function: func.FuncOp, hoisted: list[ir.OpView]) -> dict[ir.Value, str]:
    """Name of the first constant argument that a value is made of; nothing for a value of literals alone."""
    found = {argument: name for argument in function.arguments if (name := constant_name(argument)) is not None}
    for op in hoisted:
        name = next((found[value] for value in tensor_operands(op) if value in found), None)
        if name is not None:
            found[op.results[0]] = name
    return found


def _add_arguments(function: func.FuncOp, used: list[ir.Value], names: list[str]) -> None:
    """Append a constant argument for each value and let its readers use that."""
    attributes = [*function.arg_attrs, *map(_constant_attribute, names)]
    for value in used:
        value.replace_all_uses_with(function.entry_block.add_argument(value.type, function.location))
    _retype(function, attributes)


def _retype(function: func.FuncOp, attributes: Sequence[ir.DictAttr]) -> None:
    kinds = [argument.type for argument in function.arguments]
    function.function_type = ir.TypeAttr.get(ir.FunctionType.get(kinds, function.type.results))
    function.arg_attrs = list(attributes)


def _drop_unused_constants(function: func.FuncOp) -> None:
    attributes = list(function.arg_attrs)
    for argument in reversed(_constant_arguments(function)):
        if not readers(argument):
            number = argument.arg_number
            function.entry_block.erase_argument(number)
            del attributes[number]
    _retype(function, attributes)
