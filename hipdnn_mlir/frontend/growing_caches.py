"""Caches that a model grows by Concat become buffers that are written in place, with what is valid in them as data (adr/0038)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx

from hipdnn_mlir_runtime.expressions import Size

from ..dynamic.facts import Assumption, Fact
from ..dynamic.input_sizes import InputSizes
from ..ops.strides import Dims
from .buffered import buffered
from .cache_edits import ROWS_AXIS, NotBufferedError, edits_of
from .prepare import Slim
from .shape_inference import attributes_of, static_dims

LENGTH = "past_length"
"""The input that says how many rows of the caches are valid before a run."""


@dataclass(frozen=True)
class Growth:
    """Caches of a model that grow.

    Attributes:
        caches: names of each as input and as output.
        symbol: the number of rows of the inputs.
        new: how many rows a run adds: a number, or the name of a dimension.
        sized: inputs with a dim that is as long as the caches are after a run, and its axis.
        length: the name of the input that a program has for the number of valid rows.
        model: the model's inputs.
        program: those of a program on buffers: `symbol` is the number of their rows.
    """

    caches: tuple[tuple[str, str], ...]
    symbol: str
    new: int | str
    sized: tuple[tuple[str, int], ...]
    length: str
    model: InputSizes
    program: InputSizes

    def new_rows(self, symbols: Sequence[int]) -> int:
        """How many rows a run adds where the symbols have the given values."""
        return self.new if isinstance(self.new, int) else symbols[self.model.table.symbols.index(self.new)]

    def grown(self, point: Sequence[int]) -> tuple[int, ...]:
        """A point of the model's sizes as one of the program's: buffers have as many rows as the caches after a run."""
        index = self.model.table.symbols.index(self.symbol)
        return (*point[:index], point[index] + self.new_rows(point), *point[index + 1 :])

    def before(self, dims: Mapping[str, Dims], by: int = 0) -> dict[str, Dims]:
        """Dims of a program's inputs as those of the model's for which the buffers are filled by a run, and `by` rows longer."""
        found = {name: tuple(sizes) for name, sizes in dims.items() if name != self.length}
        new = self._new_at(found)
        for name, _ in self.caches:
            found[name] = _with(found[name], ROWS_AXIS, found[name][ROWS_AXIS] - new + by)
        for name, axis in self.sized:
            found[name] = _with(found[name], axis, found[name][axis] + by)
        return found

    def _new_at(self, dims: Mapping[str, Dims]) -> int:
        if isinstance(self.new, int):
            return self.new
        wanted = self.model.table.symbol(self.new)
        return next(
            dims[name][axis]
            for name, sizes in self.model.inputs.items()
            for axis, size in enumerate(sizes)
            if size == wanted
        )


def _with(dims: Dims, axis: int, size: int) -> Dims:
    return (*dims[:axis], size, *dims[axis + 1 :])


def growth_of(
    proto: onnx.ModelProto,
    declared: InputSizes,
    related: Callable[[], InputSizes],
    at: Callable[[Mapping[str, Dims]], Slim],
) -> Growth | None:
    """The growing caches of a model, as far as its inputs and outputs tell; None where there are none.

    An input of a mask is as long as the caches are after a run. Exporters give that length a name of its own, and some models read such a
    mask by index and would take a longer one.

    Args:
        proto: the model.
        declared: its inputs.
        related: these without sizes that operators fix or relate; asked for only where caches grow.
        at: the model where its inputs have given dims.

    Raises:
        HipdnnMlirError: the model cannot be prepared.
    """
    if not _caches(proto, declared):
        return None
    sizes = related()
    found = _caches(proto, sizes)
    if len({symbol for _, _, symbol in found}) != 1:
        return None
    caches, symbol = tuple((past, present) for past, present, _ in found), found[0][2]
    new = _new_rows(sizes, caches, at)
    if new is None:
        return None
    for name in _mask_lengths(proto, sizes) - {symbol, new}:
        sizes = sizes.replaced(name, _after(sizes, symbol, new))
    past, after = sizes.table.symbol(symbol), _after(sizes, symbol, new)
    inputs, sized = dict(sizes.inputs), []
    for name, dims in sizes.inputs.items():
        for axis, size in enumerate(dims):
            if symbol not in sizes.table.names(size) or (name in dict(caches) and axis == ROWS_AXIS):
                continue
            if not _is_same(sizes, size, after):
                return None
            sized.append((name, axis))
            inputs[name] = (*inputs[name][:axis], past, *inputs[name][axis + 1 :])
    length = LENGTH
    while length in inputs:
        length += "_"
    return Growth(caches, symbol, new, tuple(sized), length, sizes, InputSizes({**inputs, length: (1,)}, sizes.table))


def _after(sizes: InputSizes, symbol: str, new: int | str) -> Size:
    """The number of rows after a run."""
    table = sizes.table
    return table.make("+", table.symbol(symbol), new if isinstance(new, int) else table.symbol(new))


def _is_same(sizes: InputSizes, a: Size, b: Size) -> bool:
    count = len(sizes.table.symbols)
    points = [tuple(7 + 10 * index + turn * (index + 3) for index in range(count)) for turn in range(3)]
    return all(sizes.table.value(a, point) == sizes.table.value(b, point) for point in points)


def _new_rows(
    sizes: InputSizes, caches: Sequence[tuple[str, str]], at: Callable[[Mapping[str, Dims]], Slim]
) -> int | str | None:
    """How many rows a run adds: a number, or the symbol that it is."""
    presents = {present for _, present in caches}
    rows = []
    points = [
        tuple(5 + 6 * index + turn * (2 * index + 1) for index in range(len(sizes.table.symbols))) for turn in (0, 1)
    ]
    for point in points:
        model = at(sizes.at(point)).model
        graph = model.graph
        dims = {value.name: static_dims(value) for value in (*graph.input, *graph.value_info, *graph.output)}
        dims |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
        joined = {dims[node.input[1]] for node in graph.node if node.output[0] in presents and len(node.input) == 2}
        found = {shape[ROWS_AXIS] for shape in joined if shape is not None and len(shape) > ROWS_AXIS}
        if len(found) != 1:
            return None
        rows.append(found.pop())
    if rows[0] == rows[1]:
        return rows[0]
    columns = dict(zip(sizes.table.symbols, zip(*points, strict=True), strict=True))
    return next((name for name, column in columns.items() if list(column) == rows), None)


def _mask_lengths(proto: onnx.ModelProto, sizes: InputSizes) -> set[str]:
    """Names of dims that masks alone have: the last one of inputs of two or four dims that are no caches."""
    inputs = {value.name: len(value.type.tensor_type.shape.dim) for value in proto.graph.input}
    found, others = set[str](), set[str]()
    for name, dims in sizes.inputs.items():
        for axis, size in enumerate(dims):
            is_last = axis == len(dims) - 1 and inputs.get(name) in (2, 4)
            (found if is_last else others).update(sizes.table.names(size))
    return found - others


def _caches(proto: onnx.ModelProto, sizes: InputSizes) -> list[tuple[str, str, str]]:
    """Caches of four dims as input and as output, and the symbols of their rows."""
    found = []
    for past, present in joined_caches(proto.graph):
        dims = sizes.inputs.get(past, ())
        symbols = sizes.table.names(dims[ROWS_AXIS]) if len(dims) == 4 else ()
        if len(symbols) == 1 and dims[ROWS_AXIS] == sizes.table.symbol(next(iter(symbols))):
            found.append((past, present, next(iter(symbols))))
    return found


def joined_caches(graph: onnx.GraphProto) -> list[tuple[str, str]]:
    """Inputs that are joined with what is new along their rows, and the outputs that this gives."""
    inputs, outputs = ({value.name for value in values} for values in (graph.input, graph.output))
    same: dict[str, str] = {}
    found = []
    for node in graph.node:
        if node.op_type in ("Concat", "Identity") and len(node.input) == 1:
            same[node.output[0]] = same.get(node.input[0], node.input[0])
        if node.op_type != "Concat" or len(node.input) != 2 or node.output[0] not in outputs:
            continue
        past = same.get(node.input[0], node.input[0])
        if past in inputs and attributes_of(node).get("axis") in (ROWS_AXIS, ROWS_AXIS - 4):
            found.append((past, node.output[0]))
    return found


def with_buffers(growth: Growth, slims: Sequence[Slim], longer: Slim) -> list[Slim]:
    """A model on buffers.

    Args:
        growth: its caches.
        slims: the model where a run fills the buffers, at each point.
        longer: the first of them with a longer past: what differs between the two depends on the past.

    Raises:
        NotBufferedError: it does more with its caches than is known here.
    """
    facts = _facts(slims[0].facts)
    edits = edits_of(slims[0].model, longer.model, dict(growth.caches))
    return [
        replace(slim, model=buffered(slim.model, edits, dict(growth.caches), growth.length), facts=facts)
        for slim in slims
    ]


def _facts(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Facts of the points alone; those that a longer past changes would be taken for facts of the buffers."""
    kept = []
    for fact in facts:
        if isinstance(fact, Assumption):
            if fact.a[0] - fact.a[-1] != fact.b[0] - fact.b[-1] and not _is_always(fact):
                raise NotBufferedError(f"{fact.node} decides by the length of the past")
        elif fact.a[0] != fact.a[-1] or fact.b[0] != fact.b[-1]:
            raise NotBufferedError(f"{fact.operator} of the length of the past is computed")
        kept.append(replace(fact, a=fact.a[:-1], b=fact.b[:-1]))
    return tuple(kept)


def _is_always(fact: Assumption) -> bool:
    """Whether a size is said not to be a negative number: where a shape may have -1 in it, and where positions are counted up to it."""
    if fact.relation == "<=":
        return max(fact.a) <= 0 <= min(fact.b) and fact.b[0] < fact.b[-1]
    return fact.relation == "!=" and (max(fact.a) < 0 <= min(fact.b) or max(fact.b) < 0 <= min(fact.a))
