"""hipdnn-outline-constants: move arithmetic on constants out of the program, to be evaluated once at compile time."""

from typing import Any

from torch_mlir import ir

from ..errors import Reject
from ..ir.blocks import body, clone_into, erase_dead, functions
from ..ir.constants import CONSTANT, CONSTANTS_FUNCTION, STAYS, VARIES, constant_name, tensor_operands
from ..ir.module_pass import module_pass
from ..ir.types import is_tensor, tensor_type
from ..ir.view import defining, lookup
from ..ops.evaluate import prepare
from ..ops.row import OpRow, moves


@module_pass("hipdnn-outline-constants")
def outline_constants(module: Any) -> None:
    """Move every op whose operands are constant into `@hipdnn_constants`; its results enter `@main` as constant arguments.

    Constant arguments carry `hipdnn.constant = "name"`; their data stays outside the IR. Literals with dims become constants too, and so
    do returned ones. A view of a weight stays where it is (it costs nothing) unless arithmetic needs it.

    Before: `func.func @main(%x, %w {hipdnn.constant = "w"})` with `%v = torch.aten.mul.Tensor %w, %s`.
    After: `func.func private @hipdnn_constants(%w) -> ...` holds the product; `@main(%x, %v {hipdnn.constant = "w.folded"})`.
    """
    for function in [f for f in functions(module) if _name(f) != CONSTANTS_FUNCTION]:
        _outline(module, function)


def _name(function: Any) -> str:
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def _outline(module: Any, function: Any) -> None:
    constant: dict[
        Any, bool
    ] = {}  # value -> whether arithmetic made it (True) or it is a leaf or a view of one (False)
    for argument in function.regions[0].blocks[0].arguments:
        if constant_name(argument) is not None:
            constant[argument] = False
    hoisted: dict[Any, None] = {}
    for operation in body(function):
        kind = _classify(operation, constant)
        if kind is not None:
            hoisted[operation] = None
            constant[operation.results[0]] = kind
    used = [
        result
        for op in hoisted
        if constant[result := op.results[0]] and any(u.owner.operation not in hoisted for u in result.uses)
    ]
    if used:
        _move(module, function, list(hoisted), used)
    erase_dead(function)
    _drop_unused_constants(function)


def _classify(operation: Any, constant: dict[Any, bool]) -> bool | None:
    """None where the op is not constant; else whether its result has to be stored."""
    if len(operation.results) != 1 or not is_tensor(operation.results[0].type):
        return None
    if operation.name == "torch.vtensor.literal":
        stored = tensor_type(operation.results[0].type).dims or VARIES in operation.attributes
        needs_buffer = any(_needs_buffer(use.owner.operation) for use in operation.results[0].uses)
        return True if needs_buffer or stored else None
    if VARIES in operation.attributes or STAYS in operation.attributes:
        return None
    tensors = tensor_operands(operation)
    if not tensors or not all(value in constant or _is_scalar_literal(value) for value in tensors):
        return None
    found = lookup(operation)
    if isinstance(found, Reject) or isinstance(prepare(found[1]), Reject):
        return None
    return _stores(found[0]) or any(constant.get(value, True) for value in tensors)


def _needs_buffer(reader: Any) -> bool:
    """Whether an op reads numbers from buffers only: a kernel of its own does, and the caller."""
    if reader.name == "func.return":
        return True
    found = lookup(reader)
    return not isinstance(found, Reject) and found[0].call is not None and not moves(*found)


def _stores(row: OpRow) -> bool:
    """Views of weights are free at run time; everything else is made once, at compile time."""
    return row.move is None or not row.becomes.startswith("view")


def _is_scalar_literal(value: Any) -> bool:
    source = defining(value)
    return source is not None and source.name == "torch.vtensor.literal"


def _move(module: Any, function: Any, hoisted: list[Any], used: list[Any]) -> None:
    arguments = [a for a in function.regions[0].blocks[0].arguments if constant_name(a) is not None]
    kinds = [a.type for a in arguments], [value.type for value in used]
    names = _fresh_names(function, hoisted, used)
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]), function.location:
        created = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(CONSTANTS_FUNCTION),
                "sym_visibility": ir.StringAttr.get("private"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(*kinds)),
                "arg_attrs": ir.ArrayAttr.get([_constant_attribute(constant_name(a) or "") for a in arguments]),
                "res_attrs": ir.ArrayAttr.get([_constant_attribute(name) for name in names]),
            },
            regions=1,
        )
    block = created.regions[0].blocks.append(*kinds[0], arg_locs=[function.location] * len(arguments))
    mapping = dict(zip(arguments, block.arguments, strict=True))
    with ir.InsertionPoint(block), function.location:
        for operation in hoisted:
            clone_into(operation, mapping)
        ir.Operation.create("func.return", operands=[mapping[value] for value in used])
    erase_dead(created)
    _add_arguments(function, used, names)


def _constant_attribute(name: str) -> Any:
    return ir.DictAttr.get({CONSTANT: ir.StringAttr.get(name)})


def _fresh_names(function: Any, hoisted: list[Any], used: list[Any]) -> list[str]:
    taken = {constant_name(a) for a in function.regions[0].blocks[0].arguments}
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


def _origins(function: Any, hoisted: list[Any]) -> dict[Any, str]:
    """Name of the first constant argument that a value is made of; nothing for a value of literals alone."""
    found = {a: name for a in function.regions[0].blocks[0].arguments if (name := constant_name(a)) is not None}
    for operation in hoisted:
        name = next((found[value] for value in tensor_operands(operation) if value in found), None)
        if name is not None:
            found[operation.results[0]] = name
    return found


def _add_arguments(function: Any, used: list[Any], names: list[str]) -> None:
    """Append a constant argument for each value and let its readers use that."""
    block = function.regions[0].blocks[0]
    attributes = _argument_attributes(function, len(block.arguments))
    for value in used:
        value.replace_all_uses_with(block.add_argument(value.type, function.location))
    _retype(function, attributes + [_constant_attribute(name) for name in names])


def _argument_attributes(function: Any, count: int) -> list[Any]:
    if "arg_attrs" in function.attributes:
        return list(ir.ArrayAttr(function.attributes["arg_attrs"]))
    return [ir.DictAttr.get({})] * count


def _retype(function: Any, attributes: list[Any]) -> None:
    old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    kinds = [argument.type for argument in function.regions[0].blocks[0].arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, list(old.results)))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)


def _drop_unused_constants(function: Any) -> None:
    block = function.regions[0].blocks[0]
    attributes = _argument_attributes(function, len(block.arguments))
    for index in reversed(range(len(block.arguments))):
        argument = block.arguments[index]
        if constant_name(argument) is not None and not list(argument.uses):
            block.erase_argument(index)
            del attributes[index]
    _retype(function, attributes)
