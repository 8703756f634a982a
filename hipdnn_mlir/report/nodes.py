"""The nodes of a model, as reports count them, whatever the model is written in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..compiler.source import OnnxSource, Source
from ..ops.strides import Dims
from ..placement.cost import is_counted, node_flops
from ..placement.graph import OnnxGraph, read_graph
from ..placement.shapes import infer_types
from .advice import NEW_OPERATOR

if TYPE_CHECKING:
    from ..compiler.torch_source import TorchSource


@dataclass(frozen=True)
class ModelNodes:
    """The nodes of a model.

    Attributes:
        operators: node -> its operator, in the order of the model.
        reads: for each node the numbers of the nodes whose results it reads, which are earlier ones.
        flops_percent: given names of nodes, their share of the floating-point operations of convolutions and matmuls; None where the model
            has none, or their sizes are not known.
        lines: node -> the line of the user's code that it comes from, where that is known.
        new_operator: what helps where the op table has no row for an operator.
    """

    operators: Mapping[str, str]
    reads: Sequence[Sequence[int]]
    flops_percent: Callable[[Collection[str]], float | None]
    lines: Mapping[str, str] = field(default_factory=dict)
    new_operator: str = NEW_OPERATOR


def model_nodes(source: Source[Any], shapes: Mapping[str, Dims]) -> ModelNodes:
    """The nodes of a model.

    Args:
        source: the model.
        shapes: dims of its inputs that stand for dynamic ones.
    """
    return onnx_nodes(read_graph(source.proto)) if isinstance(source, OnnxSource) else _torch_nodes(source, shapes)  # type: ignore[arg-type]


def onnx_nodes(graph: OnnxGraph) -> ModelNodes:
    """The nodes of an ONNX model, constants left out."""
    counted = [node for node in graph.nodes if is_counted(node)]

    def flops_percent(names: Collection[str]) -> float | None:
        if all(node.name in names for node in counted):  # sizes need not be inferred, which takes a while
            return 100.0 if counted else None
        types = infer_types(graph)
        return _share({node.name: node_flops(graph, types, node) for node in counted}, names)

    reads = [sorted(graph.sources(index)) for index in range(len(graph.nodes))]
    return ModelNodes({node.name: node.op_type for node in graph.nodes}, reads, flops_percent)


def _torch_nodes(source: TorchSource, shapes: Mapping[str, Dims]) -> ModelNodes:
    """The ops of an exported module that compute tensors."""
    from ..frontend.pytorch.counting import flops_by_node, operators, reads

    def flops_percent(names: Collection[str]) -> float | None:
        (model,) = source.at([shapes])
        return _share(flops_by_node(model.graph), names)

    advice = (
        "replace it, or use torch.compile(module, backend='hipdnn'), which leaves to PyTorch what cannot be compiled"
    )
    return ModelNodes(operators(source.exported), reads(source.exported), flops_percent, source.lines, advice)


def _share(flops: Mapping[str, float], names: Collection[str]) -> float | None:
    total = sum(flops.values())
    return 100.0 * sum(count for name, count in flops.items() if name in names) / total if total else None
