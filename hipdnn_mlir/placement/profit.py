"""The hop rule: a partition whose crossings to and from the CPU cost more than it gains stays on the CPU.

A value that crosses between a partition and a node on the CPU is a hop and costs `CostModel.crossing_us` of its bytes. Inputs and outputs
of the graph, constants, and values between two partitions are no hops; a value with several readers on the other side is one. The gain of
a partition is the estimated time of its ONNX nodes on the CPU less the estimated time of its program; a partition that only moves data
gains nothing. Where hops cost more than the gain, the partition is dropped, the one that loses most first; its nodes then count as nodes
on the CPU, so the others are weighed anew, until none loses. A partition without hops always stays. Dynamic dimensions count
as `Types.probe`.
"""

from collections.abc import Sequence

from ..compiler.program import Lowered
from ..targets.target import CostModel
from .cost import node_us, program_us, value_bytes
from .graph import OnnxGraph
from .shapes import Types

Members = tuple[int, ...]


def drop_losing(
    graph: OnnxGraph, types: Types, verified: Sequence[tuple[Members, Lowered]], cost: CostModel
) -> list[tuple[Members, str]]:
    """The partitions that lose, with the numbers.

    Args:
        graph: the whole graph.
        types: of its values.
        verified: disjoint partitions and their compiled form.
        cost: of the target.
    """
    gains = {members: _gain(graph, types, members, lowered, cost) for members, lowered in verified}
    dropped: list[tuple[Members, str]] = []
    while gains:
        hops = {members: _hops(graph, members, gains) for members in gains}
        costs = {
            m: sum(cost.crossing_us(value_bytes(graph, types, name)) for name in names) for m, names in hops.items()
        }
        worst = min(gains, key=lambda members: gains[members] - costs[members] if hops[members] else 0.0)
        if not hops[worst] or costs[worst] <= gains[worst]:
            break
        crossing = f"hops to and from the CPU ({len(hops[worst])}) cost {costs[worst]:.1f} us"
        dropped.append((worst, f"{crossing}, running here gains {gains.pop(worst):.1f} us"))
    return dropped


def _gain(graph: OnnxGraph, types: Types, members: Members, lowered: Lowered, cost: CostModel) -> float:
    """Microseconds saved, hops aside."""
    if not lowered.graphs:
        return 0.0
    on_cpu = sum(node_us(graph, types, member, cost.cpu) for member in members)
    return on_cpu - program_us(lowered.model, cost)


def _hops(graph: OnnxGraph, members: Members, kept: dict[Members, float]) -> list[str]:
    """Values that cross between a partition and nodes on the CPU, each once."""
    placed = {member for partition in kept for member in partition}
    read = dict.fromkeys(name for member in members for name in graph.reads[member] if name in graph.writer)
    written = [name for member in members for name in graph.writes(member)]
    incoming = [name for name in read if graph.writer[name] not in placed]
    outgoing = [name for name in written if any(reader not in placed for reader in graph.readers.get(name, ()))]
    return incoming + outgoing
