"""Attributes and operands of a node in the place of a function's arguments."""

from collections.abc import Sequence
from typing import Any

from torch_mlir import ir

from ..ops.spec import Refusal, TensorType
from .function import ATTRIBUTE, DEFAULT, LISTS, SCALARS, MlirFunction, inside_optional, is_tensor_type, marks


def name_of(function: MlirFunction) -> str:
    """The function as messages call it."""
    return f"@{function.symbol} of {function.where}"


def bind(
    function: MlirFunction, entry: Any, operands: Sequence[TensorType | None], attributes: dict[str, Any]
) -> list[int]:
    """Put constants in the place of attributes and of operands that are left out; returns the positions of the tensor arguments.

    Raises:
        Refusal: the node does not fit.
    """
    block = entry.regions[0].blocks[0]
    arguments = list(block.arguments)
    tensors = [index for index, argument in enumerate(arguments) if is_tensor_type(argument.type)]
    needed = max((n + 1 for n, i in enumerate(tensors) if not inside_optional(arguments[i].type)), default=0)
    given = [*operands, *[None] * (len(tensors) - len(operands))]
    if not needed <= len(operands) <= len(tensors):
        takes = str(needed) if needed == len(tensors) else f"{needed} to {len(tensors)}"
        raise Refusal("operands", f"{name_of(function)} takes {takes} tensors, the node has {len(operands)}")
    with ir.InsertionPoint.at_block_begin(block):
        for number, (index, kind) in enumerate(zip(tensors, given, strict=True)):
            _bind_tensor(function, arguments[index], number, kind)
        for index, (argument, mark) in enumerate(zip(arguments, marks(entry), strict=True)):
            if index not in tensors:
                argument.replace_all_uses_with(_attribute(function, argument, mark, attributes))
    if attributes:
        raise Refusal("attribute", f"{name_of(function)} has no argument for attribute {next(iter(attributes))!r}")
    retype(entry)
    return tensors


def _bind_tensor(function: MlirFunction, argument: Any, number: int, kind: TensorType | None) -> None:
    inner = inside_optional(argument.type)
    if kind is None and not inner:
        raise Refusal("operands", f"{name_of(function)} needs input {number}, which the node leaves out")
    if kind is not None:
        check_fits(f"input {number} is", kind, ir.Type.parse(inner or str(argument.type)), f"{name_of(function)} takes")
    if not inner:
        return
    wrapped = argument.type
    if kind is None:
        none = _create("torch.constant.none", "!torch.none")
        argument.replace_all_uses_with(_create("torch.derefine", wrapped, [none]))
        return
    argument.set_type(ir.Type.parse(inner))
    derefined = _create("torch.derefine", wrapped, [argument])
    argument.replace_all_uses_except(derefined, derefined.owner.operation)


def check_fits(what: str, kind: TensorType, declared: Any, who: str) -> None:
    """Check a static type against one that may leave dims and element type open; refuses what does not fit."""
    text = str(declared)
    if text == "!torch.vtensor":
        return
    dims, _, element = text.removeprefix("!torch.vtensor<").removesuffix(">").rpartition(",")
    if element not in ("unk", kind.dtype.torch):
        raise Refusal("dtype", f"{what} {kind}, {who} {element}")
    sizes = [] if dims in ("*", "[]") else dims[1:-1].split(",")
    ranks = dims == "*" or len(sizes) == len(kind.dims)
    if not ranks or any(size not in ("?", str(found)) for size, found in zip(sizes, kind.dims, strict=False)):
        raise Refusal("shape", f"{what} {kind}, {who} {dims}")


def retype(entry: Any) -> None:
    """Bring the function's type in line with its arguments and what it returns."""
    block = entry.regions[0].blocks[0]
    returned = block.operations[len(block.operations) - 1].operation
    kind = ir.FunctionType.get([a.type for a in block.arguments], [value.type for value in returned.operands])
    entry.attributes["function_type"] = ir.TypeAttr.get(kind)


def _attribute(function: MlirFunction, argument: Any, mark: dict[str, Any], attributes: dict[str, Any]) -> Any:
    """The value of an attribute as constants; takes it out of `attributes`."""
    name = str(ir.StringAttr(mark[ATTRIBUTE]).value)
    inner = inside_optional(argument.type)
    kind = inner or str(argument.type)
    value = attributes.pop(name, _plain(mark[DEFAULT]) if DEFAULT in mark else None)
    if value is None:
        if not inner:
            raise Refusal("attribute", f"{name_of(function)} needs the attribute {name!r}, which the node lacks")
        made = _create("torch.constant.none", "!torch.none")
    elif (kind in LISTS) != isinstance(value, list):
        raise Refusal("attribute", f"attribute {name!r} is {value!r}, {name_of(function)} takes a {kind}")
    elif kind in LISTS:
        made = _create(
            "torch.prim.ListConstruct", kind, [_constant(function, name, LISTS[kind], item) for item in value]
        )
    else:
        made = _constant(function, name, kind, value)
    return _create("torch.derefine", argument.type, [made]) if inner else made


def _plain(attribute: Any) -> Any:
    if isinstance(attribute, ir.ArrayAttr):
        return [_plain(item) for item in attribute]
    return attribute.value


def _constant(function: MlirFunction, name: str, kind: str, value: Any) -> Any:
    fits = isinstance(value, str) == (kind == "!torch.str") and not (
        isinstance(value, float) and kind != "!torch.float"
    )
    if not fits:
        raise Refusal("attribute", f"attribute {name!r} has the value {value!r}, {name_of(function)} takes a {kind}")
    held = {
        "!torch.int": lambda: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value),
        "!torch.float": lambda: ir.FloatAttr.get(ir.F64Type.get(), float(value)),
        "!torch.bool": lambda: ir.BoolAttr.get(bool(value)),
        "!torch.str": lambda: ir.StringAttr.get(value),
    }[kind]()
    return _create(f"torch.constant.{SCALARS[kind]}", kind, value=held)


def _create(name: str, kind: Any, operands: Sequence[Any] = (), **attributes: Any) -> Any:
    result = ir.Type.parse(kind) if isinstance(kind, str) else kind
    return ir.Operation.create(name, results=[result], operands=list(operands), attributes=attributes).result
