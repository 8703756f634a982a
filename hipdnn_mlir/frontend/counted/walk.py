"""Goes through a model from the operators whose data decides how many rows they have to what needs those rows."""

from collections.abc import Collection, Iterable, Iterator

import onnx

from ..constant_folding import RANDOM
from ..subgraphs import reads, subgraphs
from .mixing import MIXING, empty_where, keep_places
from .sizes import MOST, NONE, PARTS, SIZES, Sizes, Times, times
from .sources import OPERATORS, is_source
from .writer import Cut, Writer

_COMPARISONS, _PRODUCTS = frozenset({"Equal", "Greater", "Less"}), frozenset({"And", "Mul", "Not", "Or", "ReduceProd"})
"""Operators of conditions that ask whether there are rows."""


class Walk:
    """What becomes of the nodes of a model.

    Args:
        model: with inferred types, names for all nodes, and none that stands for two values.
        declared: what it declares of its values.
        symbols: names of its dynamic dimensions.

    Attributes:
        sizes: of its values.
        write: what has written the cuts.
        items: its nodes in order; a cut in the place of one that needs to know how many rows count.
        constants: those of branches that are nodes of the model now.

    Raises:
        Unfollowed: nothing says how rows go through a node.
    """

    def __init__(
        self, model: onnx.ModelProto, declared: Iterable[onnx.ValueInfoProto], symbols: Collection[str]
    ) -> None:
        graph = model.graph
        self.sizes = Sizes(model)
        self._taken = {*symbols, *(value.name for value in (*graph.input, *graph.initializer))}
        self._taken |= {name for node in graph.node for each in _within(node) for name in (*each.input, *each.output)}
        self._declared = {value.name: value for value in declared}
        self._symbols = symbols
        self._outputs = {value.name for value in graph.output}
        self._first: dict[bytes, onnx.NodeProto] = {}
        self._same: dict[str, str] = {}
        self.write = Writer(self.sizes, self._named, self._fresh)
        self.items: list[onnx.NodeProto | Cut] = []
        self.constants: list[onnx.TensorProto] = []
        for node in graph.node:
            self._visit(node)

    def _named(self, value: str) -> str:
        """What the model calls the number of rows of a value."""
        dims = self._declared.get(value, onnx.ValueInfoProto()).type.tensor_type.shape.dim
        names = [dim.dim_param for dim in dims if dim.dim_param and dim.dim_param not in self._symbols]
        return names[0] if len(names) == 1 else ""

    def _fresh(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _visit(self, node: onnx.NodeProto) -> None:
        is_behind = any(map(self.sizes.follows, map(self._known_as, reads(node))))
        if not is_behind and not is_source(node):
            self.items.append(node)
            if not self._symbols:
                self.sizes.complete(node)
            return
        if self._same or (node.op_type == "If" and not node.domain):
            copied = onnx.NodeProto()
            copied.CopyFrom(node)
            node = copied
            self._rename(node)
        if node.op_type == "If" and self._branched(node):
            return
        first = self._first_like(node)
        if first is not None:
            self._repeat(node, first)
            return
        self.sizes.add_maker(node)
        self.write.begin(node)
        form = OPERATORS[node.op_type] if is_source(node) else MIXING.get(node.op_type) if not node.domain else None
        cut = form(self.write) if form else None
        self.items.append(cut or node)
        if cut is None:
            self.sizes.infer(node)
            keep_places(self.write, node)
        elif any(self.sizes.dims_of(name) is None for name in (*node.output, *(cut.operands or ())) if name):
            raise self.write.refused("data decides how many rows there are, and its sizes are not known")

    def _known_as(self, name: str) -> str:
        return self._same.get(name, name)

    def _rename(self, node: onnx.NodeProto) -> None:
        """Have a node read the first of values that are the same."""
        for each in _within(node):
            each.input[:] = map(self._known_as, each.input)
        for graph in subgraphs(node):
            for value in graph.output:
                value.name = self._known_as(value.name)

    def _first_like(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        """An earlier node with the same results: lists of it are the same list."""
        if node.op_type in RANDOM or any(subgraphs(node)):
            return None
        key = onnx.NodeProto()
        key.CopyFrom(node)
        key.ClearField("name")
        constants = map(self.sizes.constant, node.input)
        texts = [f"{c.dtype} {c.shape} {c.tobytes()!r}" if c is not None else "" for c in constants]
        key.input[:] = [text or name for text, name in zip(texts, node.input, strict=True)]
        key.output[:] = ["" if not name else "x" for name in node.output]
        found = self._first.setdefault(key.SerializeToString(deterministic=True), node)
        return None if found is node else found

    def _repeat(self, node: onnx.NodeProto, first: onnx.NodeProto) -> None:
        for name, same in zip(node.output, first.output, strict=True):
            if name in self._outputs:
                self._visit(onnx.helper.make_node("Identity", [same], [name], node.name))
            elif name:
                self._same[name] = same

    def _branched(self, node: onnx.NodeProto) -> bool:
        """Put the branch of an If in its place that is taken where there are rows; False where that is not known."""
        condition = self.sizes.numbers(node.input[0])
        if condition is None:
            return False
        truths = [bool(number.any()) for number in condition]
        lists = self._asks_for_none(node.input[0])
        if lists is None or len({*truths[NONE + 1 :]}) > 1:
            return False
        names = ("then_branch", "else_branch")
        taken, other = names if truths[MOST] else reversed(names)
        graphs = {attribute.name: attribute.g for attribute in node.attribute}
        rows = None
        if truths[NONE] != truths[MOST]:
            if len(lists) != 1 or not _are_empty(graphs[other]):
                return False
            rows = Times(next(iter(lists)))
        for name in (taken, other):
            self.sizes.add_constants(graphs[name].initializer)
        self.constants += graphs[taken].initializer
        for each in graphs[taken].node:
            self.sizes.add_maker(each)
        for each in graphs[taken].node:
            self._visit(each)
        for value, result in zip(graphs[taken].output, node.output, strict=True):
            source = self._known_as(value.name)
            if rows is None:
                self._visit(onnx.helper.make_node("Identity", [source], [result], node.name))
                continue
            self.write.begin(node)
            if len(times(self.sizes.dims_of(source))) != 1:
                raise self.write.refused(
                    "it asks whether there are rows, and its result does not have as many dims of rows as of no rows"
                )
            self.items.append(empty_where(self.write, source, result, rows))
        return True

    def _asks_for_none(self, condition: str) -> set[str] | None:
        """The lists that a condition asks about, if it asks for nothing but whether products of sizes are 0."""
        chain = self.sizes.chain(condition)
        lists = self.sizes.lists(chain)
        constants = [self.sizes.constant(name) for node in chain if node.op_type in _COMPARISONS for name in node.input]
        is_known = all(node.op_type in SIZES | PARTS | _COMPARISONS | _PRODUCTS for node in chain)
        is_zero = is_known and all(constant is None or not constant.any() for constant in constants)
        return lists if is_zero or not lists else None


def _within(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    yield node
    for graph in subgraphs(node):
        for each in graph.node:
            yield from _within(each)


def _are_empty(graph: onnx.GraphProto) -> bool:
    """Whether a branch's results are constants without elements."""
    made = {name: node for node in graph.node if node.op_type == "Constant" for name in node.output}
    given = {tensor.name: tensor for tensor in graph.initializer}
    for value in graph.output:
        tensor = given.get(value.name)
        if tensor is None and value.name in made:
            tensor = next((attribute.t for attribute in made[value.name].attribute if attribute.name == "value"), None)
        if tensor is None or 0 not in tensor.dims:
            return False
    return True
