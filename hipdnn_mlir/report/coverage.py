"""How much of a model runs on hipDNN graphs: where each node is, shares of all, and what is left out by reason."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hipdnn_mlir_runtime.errors import Reject

from ..placement.cost import is_counted, node_flops
from ..placement.graph import OnnxGraph
from ..placement.shapes import infer_types
from .advice import advice

Place = Literal["graph", "kernel", "moved", "folded", "left out"]
NO_WORK = frozenset({"moved", "folded"})
"""Places of nodes that nothing computes at run time."""


@dataclass(frozen=True)
class NodePlace:
    """Where a node of the model runs.

    Attributes:
        name: of the node.
        op: its operator.
        place: `graph` of a library's engine; `kernel`, of the host library or written by this compiler; `moved`: views and copies;
            `folded`: computed ahead, into weights or other nodes; `left out`.
        within: names of the graphs and kernels that it is in.
    """

    name: str
    op: str
    place: Place
    within: list[str]


@dataclass(frozen=True)
class Coverage:
    """How many nodes of a model are where.

    Attributes:
        nodes: all, constants left out.
        graph, kernel, moved, folded, left_out: those in each place.
        flops_percent: share of the floating-point operations of convolutions and matmuls that is in graphs; None where the model has none,
            or their sizes are not known.
    """

    nodes: int
    graph: int
    kernel: int
    moved: int
    folded: int
    left_out: int
    flops_percent: float | None

    @property
    def percent(self) -> float:
        """Share of the nodes on hipDNN graphs, of those that something computes at run time."""
        computed = self.graph + self.kernel + self.left_out
        return 100.0 * self.graph / computed if computed else 100.0


@dataclass(frozen=True)
class RejectGroup:
    """Nodes that are left out for the same reason.

    Attributes:
        op, rule, reason: as of each `Reject`.
        nodes: their names.
        taken_by: other targets that take such a node.
        advice: what would change the verdict; empty where nothing is known.
    """

    op: str
    rule: str
    reason: str
    nodes: list[str]
    taken_by: list[str]
    advice: str


def node_places(
    graph: OnnxGraph,
    graphs: Mapping[str, Iterable[str]],
    kernels: Mapping[str, Iterable[str]],
    movements: Iterable[str],
    rejects: Iterable[Reject],
) -> list[NodePlace]:
    """Where each node of a model is.

    Args:
        graph: the model's nodes.
        graphs: graph -> the names of the nodes in it.
        kernels: kernel -> the names of the nodes in it.
        movements: names of nodes, those of one piece of data movement joined by "+".
        rejects: nodes without a place.
    """
    within: dict[str, list[str]] = {}
    for region, names in (*graphs.items(), *kernels.items()):
        for name in names:
            within.setdefault(name, []).append(region)
    moved = {name for names in movements for name in names.split("+")}
    left = {reject.node for reject in rejects}

    def place(name: str) -> Place:
        found = within.get(name, ())
        if name in left:
            return "left out"
        if found:
            return "graph" if any(region in graphs for region in found) else "kernel"
        return "moved" if name in moved else "folded"

    return [NodePlace(node.name, node.op_type, place(node.name), within.get(node.name, [])) for node in graph.nodes]


def coverage(graph: OnnxGraph, places: Sequence[NodePlace]) -> Coverage:
    """Count nodes and floating-point operations by place."""
    counts = Counter(found.place for found in places)
    return Coverage(
        len(places),
        counts["graph"],
        counts["kernel"],
        counts["moved"],
        counts["folded"],
        counts["left out"],
        _flops_percent(graph, places),
    )


def _flops_percent(graph: OnnxGraph, places: Sequence[NodePlace]) -> float | None:
    on_graphs = {found.name for found in places if found.place == "graph"}
    counted = [node for node in graph.nodes if is_counted(node)]
    if all(node.name in on_graphs for node in counted):  # sizes need not be inferred, which takes a while
        return 100.0 if counted else None
    types = infer_types(graph)
    flops = {node.name: node_flops(graph, types, node) for node in counted}
    total = sum(flops.values())
    return 100.0 * sum(flops[name] for name in flops.keys() & on_graphs) / total if total else None


def group_rejects(
    rejects: Iterable[Reject], taken_by: Mapping[Reject, Sequence[str]], symbols: Sequence[str] = ()
) -> list[RejectGroup]:
    """One group for each operator and reason, the largest first.

    Args:
        rejects: of a model.
        taken_by: other targets that take an operation, for the first one of each reason.
        symbols: names of the model's dynamic dimensions.
    """
    groups: dict[tuple[str, str, str], list[Reject]] = {}
    for reject in dict.fromkeys(rejects):
        groups.setdefault((reject.op, reject.rule, reject.reason), []).append(reject)
    made = []
    for (op, rule, reason), members in groups.items():
        takers = [name for member in members for name in taken_by.get(member, ())]
        names = list(dict.fromkeys(member.node for member in members if member.node))
        made.append(RejectGroup(op, rule, reason, names, takers, advice(members[0], takers, symbols)))
    return sorted(made, key=lambda group: -len(group.nodes))
