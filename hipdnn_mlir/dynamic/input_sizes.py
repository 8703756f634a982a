"""The dims of a model's inputs, some of them symbols."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.expressions import Expressions, Size

OPEN = "?"
Given = int | str | None
"""A size as a user gives it: a number, the name of a symbol, or `?` (None) for one that stays open."""
Shapes = Mapping[str, Sequence[Given] | Given]
"""What a user says of sizes: input name -> dims, or symbol -> number, another symbol, or `?`."""
Buckets = Mapping[str, Sequence[int]]
"""Symbol -> the sizes that its dimension is padded to, ascending."""


def check_is_dict(name: str, given: object, expected: str) -> None:
    """Whether an argument is a dict.

    Raises:
        ModelError: it is not.
    """
    if not isinstance(given, Mapping):
        raise ModelError("no dict", where=name, expected=expected, got=repr(given))


@dataclass(frozen=True)
class Multiple:
    """What a size has to be a multiple of, and the node that needs it."""

    of: int
    node: str


@dataclass(frozen=True)
class InputSizes:
    """The dims of a model's inputs.

    Attributes:
        inputs: input name -> dims; those of a static model are numbers.
        table: the symbols, and the expressions that dims are.
        multiples: the symbols that have to be multiples of a number.
    """

    inputs: Mapping[str, tuple[Size, ...]]
    table: Expressions
    multiples: Mapping[str, Multiple] = field(default_factory=dict)

    @property
    def is_static(self) -> bool:
        """Whether every size is a number."""
        return not self.table.symbols

    @property
    def units(self) -> list[int]:
        """What each symbol has to be a multiple of."""
        return [self.multiples[symbol].of if symbol in self.multiples else 1 for symbol in self.table.symbols]

    def at(self, symbols: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """The dims where the symbols have the given values."""
        return {name: tuple(self.table.value(size, symbols) for size in dims) for name, dims in self.inputs.items()}

    def meaning(self, point: Sequence[int]) -> str:
        """What the numbers of a sample stand for, for messages: `59 stands for 'batch' (dimension 0 of 'x')`."""
        told = zip(point, self.table.symbols, strict=False)
        return ", ".join(f"{value} stands for {symbol!r}{self._place(symbol)}" for value, symbol in told)

    def separations(self, symbol: str) -> "list[InputSizes]":
        """The same with sizes of their own for the dims that a symbol is: for each; for the first of each input, the second and so on."""
        places = self._places(symbol)
        nth = [sum(name == other for other, _ in places[:index]) for index, (name, _) in enumerate(places)]
        groupings = [list(range(len(places))), nth]
        return [self._separated(symbol, places, groups) for groups in groupings if len(places) > 1 and max(groups) > 0]

    def replaced(self, symbol: str, size: Size) -> "InputSizes":
        """The same where a symbol is a number, or an expression of the others.

        Args:
            symbol: which.
            size: its size, in this table.
        """
        table = Expressions(tuple(name for name in self.table.symbols if name != symbol))

        def moved(old: Size) -> Size:
            if isinstance(old, int):
                return old
            operator, *operands = self.table.entries[old.index]
            if operator != "symbol":
                return table.make(operator, *map(moved, operands))
            (number,) = operands
            assert isinstance(number, int)
            name = self.table.symbols[number]
            return moved(size) if name == symbol else table.symbol(name)

        return replace(self, inputs={name: tuple(map(moved, dims)) for name, dims in self.inputs.items()}, table=table)

    def _separated(self, shared: str, places: Sequence[tuple[str, int]], groups: Sequence[int]) -> "InputSizes":
        """The same with a size per group of dims, called `input.axis`; the first keeps the shared name where that has a letter."""
        names = ["{}.{}".format(*places[groups.index(group)]) for group in range(max(groups) + 1)]
        if re.search(r"[^\W\d_]", shared):
            names[0] = shared
        symbols = [names[0] if name == shared else name for name in self.table.symbols]
        table = Expressions((*symbols, *names[1:]), list(self.table.entries))
        own: dict[tuple[str, int], Size] = {
            place: table.symbol(names[group]) for place, group in zip(places, groups, strict=True)
        }
        inputs = {
            name: tuple(own.get((name, axis), size) for axis, size in enumerate(dims))
            for name, dims in self.inputs.items()
        }
        return replace(self, inputs=inputs, table=table)

    def _places(self, symbol: str) -> list[tuple[str, int]]:
        """The dims that a symbol is: input and axis."""
        wanted = self.table.symbol(symbol)
        return [(name, axis) for name, dims in self.inputs.items() for axis, size in enumerate(dims) if size == wanted]

    def _place(self, symbol: str) -> str:
        """The first dim that a symbol is, in brackets; nothing where its name says so itself."""
        name, axis = next(iter(self._places(symbol)), ("", 0))
        return "" if not name or symbol == f"{name}.{axis}" else f" (dimension {axis} of {name!r})"
