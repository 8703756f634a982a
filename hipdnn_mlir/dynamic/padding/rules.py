"""Padded dims through one part of what an op becomes, by what its elements depend on (see dependence)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from .dependence import Dependence
from .dims import Column, Dim, Factor, is_prefix, padded_by, plain, reshaped

Dims = list[Dim]


class Mixes(Exception):  # noqa: N818 - control flow, turned into an error that names the node
    """Raised where padding would change what was asked for."""

    def __init__(self, symbol: str, reason: str) -> None:
        super().__init__(reason)
        self.symbol = symbol
        self.reason = reason


class Sizes(Protocol):
    """What numbers say of the sizes that are rounded up."""

    def symbol_in(self, column: Sequence[Any]) -> str | None:
        """A symbol with buckets on which a number depends."""

    def symbol_of(self, column: Column) -> str | None:
        """The symbol with buckets that a number is."""


def columns_of(shapes: Iterable[Sequence[int]]) -> list[Column]:
    """Per dim the size at each sample point."""
    return list(zip(*shapes, strict=True))


def viewed(dims: Dims, columns: Sequence[Column]) -> Dims:
    """The same elements under other dims."""
    shown = reshaped(dims, columns)
    if shown is not None:
        return shown
    symbol = next(filter(None, map(padded_by, dims)), None)
    if symbol is None:  # two codes of 4 bits are one byte
        return [plain(column) for column in columns]
    raise Mixes(symbol, "it splits a padded dimension")


def refuse_numbers(parts: Sequence[Any], sizes: Sizes) -> None:
    """Refuse a number beside the tensors that depends on a size with buckets."""
    for column in _differing(parts):
        symbol = sizes.symbol_in(column)
        if symbol is not None:
            raise Mixes(symbol, f"it computes with a number that depends on {symbol!r}")


def _differing(parts: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """What is not the same in all of several equal structures."""
    first = parts[0]
    if all(part == first for part in parts):
        return
    if isinstance(first, dict):
        for key in first:
            yield from _differing([part.get(key) for part in parts])
    elif isinstance(first, (list, tuple)) and all(
        isinstance(part, (list, tuple)) and len(part) == len(first) for part in parts
    ):
        for items in zip(*parts, strict=True):
            yield from _differing(items)
    else:
        yield tuple(parts)


def made_dim(column: Column, sizes: Sizes) -> Dim:
    """A dim that no operand has, of elements that do not depend on its size."""
    if sizes.symbol_in(column) is None:
        return plain(column)
    symbol = sizes.symbol_of(column)
    if symbol is None:
        raise Mixes(
            str(sizes.symbol_in(column)), "its result has a dimension whose size is computed from the padded one"
        )
    return (Factor(column, symbol),)


def apply(rule: Dependence, operands: Sequence[Dims], results: Sequence[Sequence[Column]], sizes: Sizes) -> list[Dims]:
    """The dims of the results of one operation or kernel."""
    found: dict[int, Dim] = {}
    for position, (labels, dims) in enumerate(zip(rule.operands, operands, strict=True)):
        for axis, (label, dim) in enumerate(zip(labels, dims, strict=True)):
            symbol = padded_by(dim)
            if symbol is not None and (label is None or (label in rule.ordered and not is_prefix(dim))):
                raise Mixes(symbol, f"it mixes elements along dimension {axis} of operand {position}")
            if label is None or dim == ():
                continue
            before = found.setdefault(label, dim)
            padded = symbol or padded_by(before)
            if before != dim and padded is not None:
                raise Mixes(padded, f"its operands are padded differently along dimension {axis}")
    return [
        [_result_dim(rule, label, column, found, sizes) for label, column in zip(labels, columns, strict=True)]
        for labels, columns in zip(rule.results, results, strict=True)
    ]


def _result_dim(rule: Dependence, label: int | None, column: Column, found: Mapping[int, Dim], sizes: Sizes) -> Dim:
    if label is not None and label in found:
        return found[label]
    if label is not None and rule.spreads:
        return made_dim(column, sizes)
    symbol = sizes.symbol_in(column)
    if symbol is not None:
        raise Mixes(symbol, f"its result has a dimension whose size depends on {symbol!r}")
    return plain(column)
