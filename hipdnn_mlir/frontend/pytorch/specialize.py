"""An exported module at given sizes of its inputs: a graph with numbers where it had symbols, in ops that the op table has."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx
from torch._subclasses.fake_tensor import FakeTensorMode

from hipdnn_mlir_runtime.errors import ModelError

from ...ops.strides import Dims
from .exported import Exported, label
from .promotion import promoted
from .spelling import Writer, respelled

MAX_FOLDED = 1 << 20
"""Elements of a constant that is computed from the module's buffers, or from none."""


@dataclass(frozen=True)
class StaticGraph:
    """A graph of a module at fixed sizes.

    Attributes:
        graph: placeholders of the inputs, then of the constants, then ops; every node has its fake result in `meta["val"]`.
        inputs: input name -> placeholder.
        constants: placeholder's name -> values.
        outputs: output name -> node.
    """

    graph: fx.Graph
    inputs: dict[str, fx.Node]
    constants: dict[str, Tensor]
    outputs: dict[str, fx.Node]


def specialized(exported: Exported, shapes: Mapping[str, Dims], folded: Mapping[fx.Node, Tensor]) -> StaticGraph:
    """The graph at the given sizes.

    Args:
        exported: the module.
        shapes: input name -> dims.
        folded: results that are constants, from `fold_constants`.
    """
    with torch.no_grad():
        return _Builder(exported, folded).build(shapes)


def fold_constants(exported: Exported) -> dict[fx.Node, Tensor]:
    """Results that depend on neither inputs nor parameters nor open sizes.

    Attention masks and positions that a module computes are such; what depends on parameters is evaluated later, with the weights.
    """
    known: dict[fx.Node, Any] = {node: exported.constants[node] for node in exported.buffers}
    with torch.no_grad():
        for node in exported.graph.graph.nodes:
            if node.op == "get_attr":
                known[node] = getattr(exported.graph, str(node.target))
            elif node.op == "call_function" and _is_constant(node, known):
                args, kwargs = fx.node.map_arg((node.args, node.kwargs), known.__getitem__)
                known[node] = node.target(*args, **kwargs)
    return {node: value for node, value in known.items() if isinstance(value, Tensor) and node.op != "placeholder"}


def _is_constant(node: fx.Node, known: Mapping[fx.Node, Any]) -> bool:
    if not all(source in known for source in node.all_input_nodes):
        return False
    if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
        return False
    found = node.meta.get("val")
    sizes = [
        value.numel() for value in (found if isinstance(found, (list, tuple)) else [found]) if isinstance(value, Tensor)
    ]
    return all(isinstance(size, int) and size <= MAX_FOLDED for size in sizes)


class _Writer(Writer):
    """Writes calls for a node of the module's graph."""

    def __init__(self, builder: "_Builder", origin: fx.Node) -> None:
        self._builder = builder
        self._origin = origin

    def call(self, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        """A call, with the place of the node."""
        return self._builder.call(self._origin, target, args, kwargs)

    def constant(self, tensor: Tensor) -> fx.Node:
        """A constant."""
        return self._builder.constant(self._origin, tensor)


class _Builder:
    """Copies a module's graph call by call, each with its result at the sizes at hand."""

    def __init__(self, exported: Exported, folded: Mapping[fx.Node, Tensor]) -> None:
        self._exported = exported
        self._folded = folded
        self._mode = FakeTensorMode(allow_non_fake_inputs=True)
        self._graph = fx.Graph()
        self._made: dict[fx.Node, Any] = {}
        self._last_placeholder: fx.Node | None = None
        self._shared: dict[Any, fx.Node] = {}
        self._constants: dict[str, Tensor] = {}

    def build(self, shapes: Mapping[str, Dims]) -> StaticGraph:
        """The graph where the inputs have these dims."""
        inputs = {}
        for name, node in self._exported.inputs.items():
            with self._mode:
                value = torch.empty(shapes[name], dtype=node.meta["val"].dtype)
            inputs[name] = self._made[node] = self._placeholder(node.name, value)
        for node in self._exported.graph.graph.nodes:
            if node.op == "call_function" and node not in self._folded:
                self._add(node)
        outputs = {name: self._resolved(node) for name, node in self._exported.outputs.items()}
        self._graph.output(tuple(outputs.values()))
        self._graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
        return StaticGraph(self._graph, inputs, self._constants, outputs)

    def _add(self, node: fx.Node) -> None:
        """Copy a call; one that gives a number is that number."""
        args: Any
        kwargs: Any
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), self._resolved)
        if node.target is operator.getitem and isinstance(args[0], Mapping):
            self._made[node] = args[0][args[1]]
            return
        writer = _Writer(self, node)
        target, args, kwargs = respelled(writer, node.target, args, kwargs)
        result = self._computed(target, args, kwargs)
        if not isinstance(result, (Tensor, list, tuple)):
            self._made[node] = result
            return
        args, kwargs = promoted(writer, target, args, kwargs, result)
        made = writer.call(target, *args, **kwargs)
        had_several = isinstance(node.meta.get("val"), (list, tuple)) and isinstance(result, Tensor)
        self._made[node] = {0: made} if had_several else made

    def call(self, origin: fx.Node, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> fx.Node:
        """A call in the place of a node of the module's graph."""
        made = self._graph.call_function(target, args, dict(kwargs))
        made.meta["label"] = label(origin)
        made.meta["val"] = self._computed(target, args, kwargs)
        return made

    def _computed(self, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        args, kwargs = fx.node.map_arg((args, kwargs), lambda node: node.meta["val"])
        try:
            with self._mode:
                return target(*args, **kwargs)
        except (RuntimeError, ValueError, IndexError) as error:
            raise ModelError(
                f"{target} does not take these sizes: {str(error).splitlines()[0]}", where=self._exported.name
            ) from error

    def _resolved(self, node: fx.Node) -> Any:
        """What stands for a node here: a node, or a value."""
        if node not in self._made:
            tensor = self._folded[node] if node in self._folded else self._exported.constants[node]
            self._made[node] = self.constant(node, tensor)
        return self._made[node]

    def constant(self, node: fx.Node, tensor: Tensor) -> fx.Node:
        """The placeholder of a constant; tied ones have one."""
        key = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype) if tensor.numel() else node
        if key not in self._shared:
            made = self._placeholder(node.name, self._mode.from_tensor(tensor.detach(), static_shapes=True))
            self._shared[key] = made
            self._constants[made.name] = tensor
        return self._shared[key]

    def _placeholder(self, name: str, value: Tensor) -> fx.Node:
        if self._last_placeholder is None:
            made = self._graph.placeholder(name)
        else:
            with self._graph.inserting_after(self._last_placeholder):
                made = self._graph.placeholder(name)
        made.meta["val"] = value
        self._last_placeholder = made
        return made
