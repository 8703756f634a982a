"""Nodes in the place of one that looks at all rows of a list, or makes one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx

from ...ops.registry import HIPDNN_DOMAIN
from ..own_operators import MASKED, NUMBER
from .sizes import MOST, Sizes, Times, Unfollowed, times


@dataclass(frozen=True)
class Cut:
    """A node that looks at all rows of a list, or makes one.

    Attributes:
        node: as the model has it.
        nodes: what takes its place.
        operands: values behind rows, whose rows have to be what is known of them; None where rows are kept apart all the same.
    """

    node: onnx.NodeProto
    nodes: Sequence[onnx.NodeProto]
    operands: Sequence[str] | None


class Writer:
    """Writes such nodes.

    Args:
        sizes: of the model's values.
        named: what the model calls the number of rows of a value, or nothing.
        fresh: makes a name that nothing has.

    Attributes:
        sizes: as given.
        rows: the numbers of rows -> the node that makes them.
        places: values whose rows are places in other values, from 0 on; those that do not count are the first place where none counts.
    """

    def __init__(self, sizes: Sizes, named: Callable[[str], str], fresh: Callable[[str], str]) -> None:
        self.sizes = sizes
        self.rows: dict[str, onnx.NodeProto] = {}
        self.places: set[str] = set()
        self.fresh = fresh
        self._named = named
        self._shared: dict[Any, tuple[str, ...]] = {}
        self._nodes: list[onnx.NodeProto] = []
        self.node = onnx.NodeProto()

    def begin(self, node: onnx.NodeProto) -> None:
        """Write in the place of another node."""
        self.node, self._nodes = node, []

    def finish(self, *operands: str) -> Cut:
        """What has been written in the place of a node that needs the rows of these operands."""
        return Cut(self.node, self._nodes, [name for name in operands if self.sizes.follows(name)])

    def refused(self, reason: str) -> Unfollowed:
        """The exception for a node that cannot be written."""
        return Unfollowed(self.node, reason)

    def emit(self, op: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any) -> None:
        """Write a node."""
        self._nodes.append(onnx.helper.make_node(op, inputs, outputs, self.node.name, domain=domain, **attributes))

    def own(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Write a node of ours with one result."""
        result = self.fresh(f"{self.node.output[0]}.{op.lower()}")
        self.emit(op, inputs, [result], HIPDNN_DOMAIN, **attributes)
        return result

    def again(self, *inputs: str, outputs: Sequence[str] = (), **attributes: Any) -> None:
        """Write the node itself with other operands and results, the first ones of its own, and other attributes."""
        made = onnx.NodeProto()
        made.CopyFrom(self.node)
        made.input[:] = [*inputs, *made.input[len(inputs) :]]
        made.output[:] = [*outputs, *made.output[len(outputs) :]]
        kept = [attribute for attribute in made.attribute if attribute.name not in attributes]
        del made.attribute[:]
        made.attribute.extend([*kept, *(onnx.helper.make_attribute(name, value) for name, value in attributes.items())])
        self._nodes.append(made)

    def shared(self, key: Any, write: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        """Values that are written once for all nodes that need the same."""
        if key not in self._shared:
            self._shared[key] = write()
        return self._shared[key]

    def new_rows(self, bound: int | None) -> Times:
        """A list whose number of rows has the name that the model gives it, or one like that of the node's result."""
        result = next(filter(None, self.node.output))
        name = self.fresh(self._named(result) or f"{result}.rows")
        self.rows[name] = self.node
        return self.sizes.enter(name, bound)

    def number(self, dim: Times) -> str:
        """The value that says how large a dim is, i64[1]."""

        def write() -> tuple[str]:
            name = self.fresh(str(dim))
            self.emit(NUMBER, [dim.name], [name], HIPDNN_DOMAIN, factor=dim.factor)
            return (name,)

        return dim.name if dim.factor == 1 else self.shared(dim, write)[0]

    def at_most(self, dim: Times, most: int) -> Times:
        """A list of the first rows of another."""

        def write() -> tuple[str]:
            bound = self.sizes.at(dim, MOST)
            made = self.new_rows(None if bound is None else min(bound, most))
            self.emit(NUMBER, [self.number(dim)], [made.name], HIPDNN_DOMAIN, most=most)
            return (made.name,)

        (name,) = self.shared(("at most", dim, most), write)
        return Times(name)

    def masked(self, name: str, fill: str, axes: Sequence[int] | None = None) -> str:
        """An operand in which rows that do not count have no part.

        Args:
            name: the operand.
            fill: what they become: `least`, `greatest`, `zero` or `one`.
            axes: along which rows are mixed; any without.
        """
        for axis, dim in times(self.sizes.dims_of(name)):
            if axes is None or axis in axes:
                name = self.own(MASKED, name, self.number(dim), axis=axis, fill=fill)
        return name

    def rows_along(self, name: str, axis: int) -> tuple[int, Times | None]:
        """A dim counted from the first, and what it is where it is a number of rows."""
        dims = self.sizes.dims_of(name)
        if not dims or not -len(dims) <= axis < len(dims):
            return 0, None
        dim = dims[axis]
        return axis % len(dims), dim if isinstance(dim, Times) else None
