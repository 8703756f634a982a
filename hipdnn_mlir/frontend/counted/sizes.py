"""The sizes of what follows from rows that data decides, and the small numbers that a model computes of them."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from hipdnn_mlir_runtime.errors import ModelError

from ...ops.evaluate import Array
from ..constant_folding import MAX_SIZES, evaluated
from ..shape_inference import node_results
from ..subgraphs import subgraphs

NONE, ONE, FEW, MANY, MOST = range(5)
"""Points at which sizes are known: no rows, one row, two different numbers of them for each list, and as many as there can be."""
SIZES = frozenset({"Shape", "Size"})
"""Operators that ask for sizes."""
PARTS = frozenset({"Cast", "Concat", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze"})
"""Operators that hand numbers on."""
_DEPTH = 100
"""Nodes behind each other that compute numbers of sizes."""


class Unfollowed(Exception):  # noqa: N818 - control flow, turned into an error that names the operator
    """Raised where nothing says how rows go through a node."""

    def __init__(self, node: onnx.NodeProto, reason: str) -> None:
        super().__init__(reason)
        self.operator, self.node = node.op_type, node.name


@dataclass(frozen=True)
class Times:
    """A dim that is so many times a number of rows.

    Attributes:
        name: of the number.
        factor: how many times.
    """

    name: str
    factor: int = 1

    def __str__(self) -> str:
        return self.name if self.factor == 1 else f"{self.name}*{self.factor}"


Dim = int | Times | str | None
"""A text is a dynamic dimension; None stands for a size that is not known."""
Dims = tuple[Dim, ...]


def times(dims: Sequence[Dim] | None) -> list[tuple[int, Times]]:
    """The dims that are numbers of rows, with their axes."""
    return [(axis, dim) for axis, dim in enumerate(dims or ()) if isinstance(dim, Times)]


class Sizes:
    """Dims and small numbers of a model's values.

    Args:
        model: with inferred types; large constants may be inputs.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        graph = model.graph
        self._model = model
        self._given = {value.name: value.type for value in (*graph.input, *graph.value_info, *graph.output)}
        self._given |= {t.name: onnx.helper.make_tensor_type_proto(t.data_type, t.dims) for t in graph.initializer}
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._makers: dict[str, onnx.NodeProto] = {}
        for node in graph.node:
            self.add_maker(node)
        self._numbers: dict[str, list[Array] | None] = {}
        self._primes = _primes()
        self._lists: dict[str, tuple[int | None, ...]] = {}
        self._by_ratio: dict[Fraction, str] = {}
        self.dims: dict[str, Dims | None] = {}
        self.kinds: dict[str, int] = {}

    def add_maker(self, node: onnx.NodeProto) -> None:
        """Note which values a node makes."""
        self._makers.update((name, node) for name in node.output if name)

    def add_constants(self, tensors: Sequence[onnx.TensorProto]) -> None:
        """Note the constants of a branch."""
        self._constants.update((tensor.name, tensor) for tensor in tensors)

    def maker(self, name: str) -> onnx.NodeProto | None:
        """The node that makes a value."""
        return self._makers.get(name)

    def chain(self, name: str) -> list[onnx.NodeProto]:
        """The nodes that compute a number of sizes, those that ask for sizes included; constants are none."""
        found: dict[str, onnx.NodeProto] = {}
        left = [name]
        while left:
            node = self._makers.get(left.pop())
            if node is not None and node.op_type != "Constant" and node.output[0] not in found:
                found[node.output[0]] = node
                left += node.input if node.op_type not in SIZES else []
        return list(found.values())

    def lists(self, chain: Iterable[onnx.NodeProto]) -> set[str]:
        """The numbers of rows that nodes ask for."""
        asked = (node.input[0] for node in chain if node.op_type in SIZES)
        return {dim.name for name in asked for _, dim in times(self.dims_of(name))}

    def enter(self, name: str, bound: int | None) -> Times:
        """A new number of rows, of which the most there can be is known or not."""
        few, many = next(self._primes)
        self._lists[name] = (0, 1, few, many, bound)
        self._by_ratio[Fraction(few, many)] = name
        return Times(name)

    def at(self, dim: Dim, point: int) -> int | None:
        """A dim at one of the points, None where it is not known."""
        if isinstance(dim, Times):
            rows = self._lists[dim.name][point]
            return None if rows is None else rows * dim.factor
        return dim if isinstance(dim, int) else None

    def tell(self, name: str, dims: Dims | None, kind: int) -> None:
        """Say what a value behind rows is; dims are None where its rank is not known."""
        self.dims[name], self.kinds[name] = dims, kind

    def follows(self, name: str) -> bool:
        """Whether a value is one behind rows."""
        return name in self.dims

    def dims_of(self, name: str) -> Dims | None:
        """The dims of a value, None where its rank is not known."""
        if name in self.dims:
            return self.dims[name]
        kind = self._given.get(name, onnx.TypeProto()).tensor_type
        if not kind.HasField("shape"):
            return None
        return tuple(map(_stated, kind.shape.dim))

    def kind_of(self, name: str) -> int:
        """The element type of a value, 0 where it is not known."""
        known = self._given.get(name, onnx.TypeProto()).tensor_type.elem_type
        return int(self.kinds.get(name, known))

    def type_at(self, name: str, point: int) -> onnx.TypeProto:
        """A value's type at one of the points; empty where that is not known."""
        dims = self.dims.get(name)
        if dims is None:
            return onnx.TypeProto() if name in self.dims else self._given.get(name, onnx.TypeProto())
        sizes = [self.at(dim, point) if isinstance(dim, Times) else dim for dim in dims]
        return onnx.helper.make_tensor_type_proto(self.kinds[name], sizes)

    def complete(self, node: onnx.NodeProto) -> None:
        """Note the types of a node's results that follow from sizes which the model computes, of one that is not behind rows."""
        left = [name for name in node.output if name and not self.is_static(name)]
        if left:
            self._given.update(self._results(node, FEW))

    def is_static(self, name: str) -> bool:
        """Whether the dims of a value that is not behind rows are numbers."""
        dims = self.dims_of(name)
        return dims is not None and all(isinstance(dim, int) for dim in dims)

    def infer(self, node: onnx.NodeProto, fixed: Mapping[int, Dim] | None = None) -> None:
        """Tell what a node's results are: row by row what their operands are.

        Args:
            node: the node.
            fixed: dims of the results that are known otherwise.
        """
        found = [self._results(node, point) for point in (FEW, MANY)]
        for name in filter(None, node.output):
            kinds = [results[name].tensor_type for results in found if name in results]
            if len(kinds) < len(found) or not all(kind.HasField("shape") for kind in kinds):
                self.tell(name, None, kinds[0].elem_type if kinds else 0)
                continue
            columns = list(zip(*(kind.shape.dim for kind in kinds), strict=False))
            dims = tuple((fixed or {}).get(axis, self._dim(*column)) for axis, column in enumerate(columns))
            self.tell(name, dims, kinds[0].elem_type)

    def _results(self, node: onnx.NodeProto, point: int) -> Mapping[str, onnx.TypeProto]:
        if any(subgraphs(node)):
            return {}
        types = {name: self.type_at(name, point) for name in node.input if name}
        numbers = {name: self.numbers(name) for name in types}
        data = {n: numpy_helper.from_array(arrays[point], n) for n, arrays in numbers.items() if arrays is not None}
        try:
            return node_results(node, types, data, self._model.opset_import)
        except ModelError:  # said where the whole model is looked at
            return {}

    def _dim(self, few: Any, many: Any) -> Dim:
        """The dim that is so many with few rows, and so many with many."""
        if _stated(few) == _stated(many):
            return _stated(few)
        if not (few.HasField("dim_value") and many.HasField("dim_value")):
            return None
        name = self._by_ratio.get(Fraction(few.dim_value, many.dim_value)) if many.dim_value else None
        return Times(name, few.dim_value // (self.at(Times(name), FEW) or 1)) if name is not None else None

    def numbers(self, name: str, depth: int = 0) -> list[Array] | None:
        """The numbers that a small value is at each point, where they follow from sizes and constants alone."""
        if name not in self._numbers:
            self._numbers[name] = self._computed(name, depth) if depth < _DEPTH else None
        return self._numbers[name]

    def fixed(self, name: str) -> Array | None:
        """The same where they are the same at every point."""
        found = self.numbers(name)
        return found[0] if found and all(np.array_equal(array, found[0]) for array in found) else None

    def constant(self, name: str) -> Array | None:
        """The same of a value that the model states."""
        tensor = self._constants.get(name)
        if tensor is None:
            maker = self._makers.get(name)
            is_stated = maker is not None and maker.op_type == "Constant"
            stated = [a for a in maker.attribute if is_stated] if maker is not None else []
            if not stated or not stated[0].name.startswith("value"):
                return None
            if stated[0].name != "value":
                return np.asarray(onnx.helper.get_attribute_value(stated[0]))
            tensor = stated[0].t
        is_near = tensor.data_location != onnx.TensorProto.EXTERNAL and np.prod(tensor.dims) <= MAX_SIZES
        return numpy_helper.to_array(tensor) if is_near else None

    def _computed(self, name: str, depth: int) -> list[Array] | None:
        constant = self.constant(name)
        if constant is not None:
            return [constant] * (MOST + 1)
        node = self._makers.get(name)
        if node is None or any(subgraphs(node)) or node.op_type == "Constant":
            return None
        if node.op_type in SIZES:
            return self._size(node)
        dims = self.dims_of(name)
        sizes = [self.at(dim, MOST) for dim in dims or ()]
        if dims is None or None in sizes or int(np.prod(sizes, dtype=np.int64)) > MAX_SIZES:  # type: ignore[arg-type]
            return None
        operands = {each: self.numbers(each, depth + 1) for each in node.input if each}
        if not operands or any(arrays is None for arrays in operands.values()):
            return None
        at = list(node.output).index(name)
        made: list[Array] = []
        for point in range(MOST + 1):
            feeds = {each: arrays[point] for each, arrays in operands.items() if arrays is not None}
            if made and all(arrays is None or arrays[point] is arrays[0] for arrays in operands.values()):
                made.append(made[0])
                continue
            results = evaluated(node, feeds, self._model)
            if results is None:
                return None
            made.append(results[at])
        return made

    def _size(self, node: onnx.NodeProto) -> list[Array] | None:
        dims = self.dims_of(node.input[0])
        sizes = [[self.at(dim, point) for dim in dims or ()] for point in range(MOST + 1)]
        if dims is None or None in sizes[MANY]:
            return None
        if None in sizes[MOST]:  # many stand for as many as there can be
            sizes[MOST] = sizes[MANY]
        rows = [np.array(row, np.int64) for row in sizes]
        if all((row == rows[0]).all() for row in rows):
            rows = [rows[0]] * len(rows)
        if node.op_type == "Size":
            return [np.asarray(row.prod()) for row in rows]
        window = {attribute.name: attribute.i for attribute in node.attribute}
        parts = slice(window.get("start"), window.get("end"))
        return [rows[0][parts]] * len(rows) if rows[1] is rows[0] else [row[parts] for row in rows]


def _stated(dim: Any) -> int | str | None:
    return int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or None


def _primes() -> Iterator[tuple[int, int]]:
    """Pairs of primes, all different: no sizes are equal by chance, and few of them are those of a model."""
    few, many = itertools.tee(number for number in itertools.count(101, 2) if _is_prime(number))
    return zip(few, itertools.islice(many, 1000, None), strict=False)


def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(3, int(number**0.5) + 1, 2))
