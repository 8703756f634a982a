"""Integer expressions over symbols, as program files hold them: a table whose entries refer to earlier ones."""

import ast
import operator
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import ModelError
from .walks import operands_first

OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "*": operator.mul,
    "floordiv": operator.floordiv,
    "ceildiv": lambda a, b: -(-a // b),
    "mod": operator.mod,
    "max": max,
}
REFERENCE = "expr"
_PYTHON = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "floordiv", ast.Mod: "mod"}


class Ref:
    """Entry `index` of a table. Not a dataclass: `dataclasses.asdict` leaves it as it is."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and other.index == self.index

    def __hash__(self) -> int:
        return hash((Ref, self.index))

    def __repr__(self) -> str:
        return f"Ref({self.index})"


Size = int | Ref
"""A number, or an expression of a table."""


@dataclass
class Expressions:
    """A table of expressions, each one entered once.

    Attributes:
        symbols: names, in the order of their values.
        entries: `("symbol", i)` or `(operator, a, b)` with numbers or earlier entries as operands.
    """

    symbols: tuple[str, ...]
    entries: list[tuple[str, *tuple[Size, ...]]] = field(default_factory=list)

    def symbol(self, name: str) -> Size:
        """The value of a symbol."""
        return self._enter(("symbol", self.symbols.index(name)))

    def make(self, name: str, a: Size, b: Size) -> Size:
        """The operator on two sizes, simplified where an operand is known."""
        if isinstance(a, int) and isinstance(b, int):
            return OPERATORS[name](a, b)
        if name in ("+", "*") and isinstance(a, int):
            a, b = b, a
        if b == {"+": 0, "*": 1, "floordiv": 1, "ceildiv": 1}.get(name):
            return a
        if b == 0 and name == "*":
            return 0
        if name == "+" and isinstance(a, Ref) and isinstance(b, int):
            match self.entries[a.index]:
                case ("+", inner, int(number)):
                    return self.make("+", inner, number + b)
        return self._enter((name, a, b))

    def _enter(self, entry: tuple[Any, ...]) -> Ref:
        try:
            return Ref(self.entries.index(entry))
        except ValueError:
            self.entries.append(entry)
            return Ref(len(self.entries) - 1)

    def value(self, size: Size, symbols: Sequence[int], found: dict[Size, int] | None = None) -> int:
        """A size where the symbols have the given values.

        Args:
            size: a number, or an expression of this table.
            symbols: a value per symbol.
            found: values of entries at these symbols, from earlier calls; gets more.
        """
        values: dict[Size, int] = {} if found is None else found

        def known(operand: Size) -> int:
            return operand if isinstance(operand, int) else values[operand]

        for entry in self._needed(size, values):
            match self.entries[entry.index]:
                case ("symbol", int(number)):
                    values[entry] = symbols[number]
                case (name, a, b):
                    values[entry] = OPERATORS[name](known(a), known(b))
        return known(size)

    def names(self, size: Size, but: Size | None = None) -> set[str]:
        """The symbols that a size is computed from; those of the entry `but` do not count."""
        found: set[str] = set()
        for entry in self._needed(size, () if but is None else (but,)):
            match self.entries[entry.index]:
                case ("symbol", int(number)):
                    found.add(self.symbols[number])
        return found

    def _needed(self, size: Size, known: Collection[Size]) -> list[Ref]:
        """The entries that a size is computed from, each behind its operands; those that are known are left out, with theirs."""

        def operands(entry: Ref) -> list[Ref]:
            return [part for part in self.entries[entry.index][1:] if isinstance(part, Ref) and part not in known]

        return operands_first(size, operands) if isinstance(size, Ref) and size not in known else []

    def to_list(self) -> list[list[Any]]:
        """The table as JSON."""
        return [[name, *(encode(operand) for operand in operands)] for name, *operands in self.entries]

    def parse(self, text: str, named: Callable[[str], Size]) -> Size:
        """A size written with names, numbers, `+ - * // %` and parentheses, as exporters write `dim_param`.

        Args:
            text: what is written.
            named: the size of each name.

        Raises:
            ModelError: anything else.
        """
        try:
            return self._parsed(ast.parse(text, mode="eval").body, named)
        except (SyntaxError, KeyError, ValueError, ZeroDivisionError) as error:
            raise ModelError(
                f"the size {text!r} is not understood", expected="names, numbers and + - * // %"
            ) from error

    def _parsed(self, node: ast.expr, named: Callable[[str], Size]) -> Size:
        match node:
            case ast.Name(id=name):
                return named(name)
            case ast.Constant(value=int(number)):
                return number
            case ast.BinOp(left=left, op=op, right=right):
                a, b, name = self._parsed(left, named), self._parsed(right, named), _PYTHON[type(op)]
                return self.make("+", a, self.make("*", b, -1)) if name == "-" else self.make(name, a, b)
        raise ValueError(ast.dump(node))


def encode(value: Any) -> Any:
    """A value as JSON, with a reference to the table for each expression in it."""
    if isinstance(value, Ref):
        return {REFERENCE: value.index}
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    return [encode(item) for item in value] if isinstance(value, (list, tuple)) else value


def names_in(text: str) -> list[str]:
    """The symbols of a written expression; empty where a text is none. A `dim_param` may be any text."""
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval").body))
    except SyntaxError:
        return []
    if not all(isinstance(node, (ast.BinOp, ast.Name, ast.Constant, ast.Load, *_PYTHON)) for node in nodes):
        return []
    return [node.id for node in nodes if isinstance(node, ast.Name)]
