"""A function in MLIR that stands for an ONNX operator, and what has to hold of it whatever its operands are.

It is a `func.func` of torch ops on value tensors. Its tensor arguments are the node's inputs in order, `!torch.optional<vtensor<...>>` for
one that a node may leave out. An argument of another type is an ONNX attribute: `hipdnn.attribute` names it, `hipdnn.default` is its value
where a node lacks it; without a default an `!torch.optional<...>` is none then.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch_mlir import ir

from ..errors import HipdnnMlirError
from ..ir.dialect import make_context
from ..ir.types import is_tensor

ATTRIBUTE, DEFAULT = "hipdnn.attribute", "hipdnn.default"
SCALARS = {"!torch.int": "int", "!torch.float": "float", "!torch.bool": "bool", "!torch.str": "str"}
"""Types of arguments that are attributes, with the names of the ops that hold such a constant."""
LISTS = {f"!torch.list<{name}>": kind for kind, name in SCALARS.items()}
_OPTIONAL = re.compile(r"!torch\.optional<(.*)>")
_PLACE = re.compile(r'"-":(\d+):')
_STRUCTURE = ("builtin.module", "func.func", "func.call", "func.return")


@dataclass(frozen=True)
class MlirFunction:
    """A function that stands for an operator.

    Attributes:
        operator: `domain.Type`.
        symbol: the function's name in the text.
        text: MLIR.
        where: the file it is from, for messages.
    """

    operator: str
    symbol: str
    text: str
    where: str


FUNCTIONS: dict[str, MlirFunction] = {}
"""`domain.Type` -> the function that stands for the operator."""


def check_function(function: MlirFunction) -> None:
    """Check what holds whatever the operands are.

    Raises:
        HipdnnMlirError: the text does not parse, lacks the function, is not of the torch dialect on values, or calls itself.
    """
    with make_context(), ir.Location.unknown():
        module = parsed(function)  # owns what follows
        named = named_functions(module)
        entry = named.get(function.symbol)
        if entry is None:
            expected = ", ".join(f"@{name}" for name in named) or "a func.func"
            raise HipdnnMlirError(f"there is no function @{function.symbol}", where=function.where, expected=expected)
        _check_calls(function, named, function.symbol, ())
        _check_arguments(function, entry)
        for index, kind in enumerate(result_types(entry)):
            if not is_tensor_type(kind) or inside_optional(kind):
                message = f"result {index} of @{function.symbol} has the type {kind}"
                raise _error(function, entry, message, expected="a !torch.vtensor")
        if not result_types(entry):
            raise _error(function, entry, f"@{function.symbol} has no results", expected="those of the operator")


def parsed(function: MlirFunction) -> Any:
    """The text as a module in the current context.

    Raises:
        HipdnnMlirError: it does not parse.
    """
    try:
        return ir.Module.parse(function.text)
    except ir.MLIRError as error:
        found = error.error_diagnostics[0]
        where = _where(function, found.location)
        raise HipdnnMlirError(f"the MLIR text does not parse: {found.message}", where=where) from error


def named_functions(module: Any) -> dict[str, Any]:
    """The functions of a module by name."""
    found = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
    return {str(ir.StringAttr(op.attributes["sym_name"]).value): op for op in found}


def line_of(operation: Any) -> str:
    """Where an op stands in the text, for messages: ` in line 5`."""
    return line(operation.location)


def line(location: Any) -> str:
    """A place in the text, for messages."""
    found = _PLACE.search(str(location))
    return f" in line {found.group(1)}" if found else ""


def result_types(entry: Any) -> list[Any]:
    """The result types that a function states."""
    return list(ir.FunctionType(ir.TypeAttr(entry.attributes["function_type"]).value).results)


def inside_optional(kind: Any) -> str | None:
    """The type inside an `!torch.optional`, or None."""
    found = _OPTIONAL.fullmatch(str(kind))
    return f"!torch.{found.group(1)}" if found else None


def is_tensor_type(kind: Any) -> bool:
    """Whether a type is a value tensor, or an optional one, whatever is known of it."""
    text = inside_optional(kind) or str(kind)
    return text == "!torch.vtensor" or is_tensor(text)


def marks(entry: Any) -> list[dict[str, Any]]:
    """The attributes of each argument."""
    arguments = entry.regions[0].blocks[0].arguments
    if "arg_attrs" not in entry.attributes:
        return [{} for _ in arguments]
    return [{m.name: m.attr for m in ir.DictAttr(found)} for found in ir.ArrayAttr(entry.attributes["arg_attrs"])]


def _where(function: MlirFunction, location: Any) -> str:
    found = _PLACE.search(str(location))
    return f"{function.where}:{found.group(1)}" if found else function.where


def _error(function: MlirFunction, operation: Any, message: str, **more: str) -> HipdnnMlirError:
    return HipdnnMlirError(message, where=_where(function, operation.location), **more)


def _check_arguments(function: MlirFunction, entry: Any) -> None:
    names: list[str] = []
    for index, (argument, given) in enumerate(zip(entry.regions[0].blocks[0].arguments, marks(entry), strict=True)):
        what = f"argument {index} of @{function.symbol}, a {argument.type},"
        if is_tensor_type(argument.type):
            continue
        kind = inside_optional(argument.type) or str(argument.type)
        if kind not in SCALARS and kind not in LISTS:
            expected = "a !torch.vtensor, or an attribute: an int, float, bool, str or a list of them"
            raise _error(function, entry, f"{what} has no counterpart in ONNX", expected=expected)
        if ATTRIBUTE not in given:
            hint = f'write {{{ATTRIBUTE} = "name"}} behind its type'
            raise _error(function, entry, f"{what} names no attribute of the operator", hint=hint)
        if not isinstance(given[ATTRIBUTE], ir.StringAttr):
            raise _error(function, entry, f"{ATTRIBUTE} of {what} is no text", expected='the name in ""')
        if DEFAULT in given and not _is_plain(given[DEFAULT]):
            raise _error(function, entry, f"{DEFAULT} of {what} is no number, text or list of them")
        names.append(str(given[ATTRIBUTE].value))
        if names.count(names[-1]) > 1:
            raise _error(function, entry, f"two arguments of @{function.symbol} are the attribute {names[-1]!r}")


def _is_plain(attribute: Any) -> bool:
    if isinstance(attribute, ir.ArrayAttr):
        return all(_is_plain(item) for item in attribute)
    return isinstance(attribute, (ir.BoolAttr, ir.FloatAttr, ir.IntegerAttr, ir.StringAttr))


def _check_calls(function: MlirFunction, named: Mapping[str, Any], symbol: str, callers: tuple[str, ...]) -> None:
    """Check the ops of a function and of those that it calls."""
    operation = named[symbol]
    if symbol in callers:
        path = " -> ".join(f"@{name}" for name in (*callers[callers.index(symbol) :], symbol))
        raise _error(function, operation, f"@{symbol} calls itself: {path}", hint="write recursion out")
    if len(operation.regions[0].blocks) != 1:
        blocks = "more than one block" if len(operation.regions[0].blocks) else "no body"
        raise _error(function, operation, f"@{symbol} has {blocks}", expected="one block of torch ops")

    for op in _nested(operation):
        if not op.name.startswith("torch.") and op.name not in _STRUCTURE:
            raise _error(function, op, f"@{symbol} has the op {op.name}", expected="ops of the torch dialect")
        values = [*op.operands, *op.results]
        if any(str(value.type).startswith("!torch.tensor") for value in values):
            hint = "write !torch.vtensor: tensors are values here"
            raise _error(function, op, f"{op.name} in @{symbol} has a tensor that may be written to", hint=hint)
        if op.name == "func.call":
            callee = str(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
            _check_calls(function, named, callee, (*callers, symbol))


def _nested(operation: Any) -> Iterator[Any]:
    """An op and those in its regions; an exception cannot leave MLIR's own walk as itself."""
    yield operation
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _nested(inner.operation)
