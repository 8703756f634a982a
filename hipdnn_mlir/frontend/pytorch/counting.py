"""The ops of an exported module, and their work as PyTorch counts it."""

from collections import Counter
from typing import Any

from torch import Tensor, fx
from torch._ops import OpOverload
from torch.utils.flop_counter import FlopCounterMode

from .exported import Exported, label
from .specialize import StaticGraph


def operators(exported: Exported) -> dict[str, str]:
    """Node -> its op, `aten.conv2d`, of those that compute tensors; arithmetic on sizes is left out."""
    return {label(node): _op_name(node.target) for node in exported.graph.graph.nodes if _computes(node)}


def reads(exported: Exported) -> list[list[int]]:
    """For each of `operators` the numbers of those whose results it reads."""
    sources: dict[fx.Node, set[int]] = {}
    found: list[list[int]] = []
    for node in exported.graph.graph.nodes:
        read = set().union(*(sources[source] for source in node.all_input_nodes))
        if _computes(node):
            sources[node] = {len(found)}
            found.append(sorted(read))
        else:
            sources[node] = read  # one of several results, a size
    return found


def _computes(node: fx.Node) -> bool:
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return False
    found = node.meta.get("val")
    return any(isinstance(value, Tensor) for value in (found if isinstance(found, (list, tuple)) else [found]))


def _op_name(op: OpOverload) -> str:
    return str(op).removesuffix(".default")


def flops_by_node(graph: StaticGraph) -> dict[str, float]:
    """Node -> floating-point operations of convolutions and matmuls; nodes without any are left out."""
    found: Counter[str] = Counter()
    for node in graph.graph.nodes:
        if node.op == "call_function":
            found[node.meta["label"]] += _flops(node)
    return {name: float(count) for name, count in found.items() if count}


def _flops(node: fx.Node) -> int:
    args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda source: source.meta["val"])
    target: Any = node.target
    with FlopCounterMode(display=False) as counter:
        target(*args, **kwargs)
    return int(counter.get_total_flops())
