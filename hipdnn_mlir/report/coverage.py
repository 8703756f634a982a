"""How much of a model runs on hipDNN graphs: where each node is, shares of all, and what is left out by reason."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hipdnn_mlir_runtime.errors import Reject

from ..compiler.source import as_written
from .advice import advice
from .nodes import ModelNodes

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
        reads: numbers of the nodes whose results it reads, in this list.
    """

    name: str
    op: str
    place: Place
    within: list[str]
    reads: list[int]


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
        operator: as the model writes it, and the op that it became: `Det (torch.aten.linalg_det)`.
        nodes: their names.
        taken_by: other targets that take such a node.
        advice: what would change the verdict; empty where nothing is known.
        lines: of a PyTorch module: the lines of the user's code that they come from, where those are known.
    """

    op: str
    rule: str
    reason: str
    operator: str
    nodes: list[str]
    taken_by: list[str]
    advice: str
    lines: list[str]


def node_places(
    nodes: ModelNodes,
    graphs: Mapping[str, Iterable[str]],
    kernels: Mapping[str, Iterable[str]],
    movements: Iterable[str],
    rejects: Iterable[Reject],
) -> list[NodePlace]:
    """Where each node of a model is.

    Args:
        nodes: the model's.
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
    left = {name for reject in rejects for name in (reject.node, *reject.node.split("+"))}

    def place(name: str) -> Place:
        found = within.get(name, ())
        if name in left:
            return "left out"
        if found:
            return "graph" if any(region in graphs for region in found) else "kernel"
        return "moved" if name in moved else "folded"

    return [
        NodePlace(name, op, place(name), within.get(name, []), list(reads))
        for (name, op), reads in zip(nodes.operators.items(), nodes.reads, strict=True)
    ]


def coverage(nodes: ModelNodes, places: Sequence[NodePlace]) -> Coverage:
    """Count nodes and floating-point operations by place."""
    counts = Counter(found.place for found in places)
    return Coverage(
        len(places),
        counts["graph"],
        counts["kernel"],
        counts["moved"],
        counts["folded"],
        counts["left out"],
        nodes.flops_percent({found.name for found in places if found.place == "graph"}),
    )


def group_rejects(
    rejects: Iterable[Reject], taken_by: Mapping[Reject, Sequence[str]], nodes: ModelNodes, symbols: Sequence[str] = ()
) -> list[RejectGroup]:
    """One group for each operator and reason, the largest first.

    Args:
        rejects: of a model.
        taken_by: other targets that take an operation, for the first one of each reason.
        nodes: the model's.
        symbols: names of the model's dynamic dimensions.
    """
    groups: dict[tuple[str, str, str], list[Reject]] = {}
    for reject in dict.fromkeys(rejects):
        groups.setdefault((reject.op, reject.rule, reject.reason), []).append(reject)
    made = []
    for (op, rule, reason), members in groups.items():
        takers = [name for member in members for name in taken_by.get(member, ())]
        names = list(dict.fromkeys(member.node for member in members if member.node))
        told = advice(members[0], takers, symbols, new_operator=nodes.new_operator)
        parts = [part for name in names for part in name.split("+")]
        lines = [line for part in parts if (line := nodes.lines.get(part))]
        made.append(
            RejectGroup(
                op,
                rule,
                reason,
                as_written(op, parts, nodes.operators),
                names,
                takers,
                told,
                list(dict.fromkeys(lines)),
            )
        )
    return sorted(made, key=lambda group: -len(group.nodes))
