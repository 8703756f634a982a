"""Places the nodes of a directed graph in layers, from top to bottom (Sugiyama's method).

Four stages: layers by the longest path, ghosts where an edge passes a layer, an order in each layer with few crossings, and then
coordinates. Edges that leave one node share their ghosts, so a value that many nodes read is one line with branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

NODE_WIDTH = 200
NODE_HEIGHT = 56
_GAP = 32
_LAYER_HEIGHT = NODE_HEIGHT + 48
_GHOST_WIDTH = 8
_GHOST_WEIGHT = 8.0
"""A long edge that stays straight is worth more than a node right below its neighbour."""
_SPINE_WEIGHT = 1e6
_ORDER_SWEEPS = 8
_PLACE_SWEEPS = 6

Point = tuple[int, int]


@dataclass(frozen=True)
class Layout:
    """Where a graph is drawn, in pixels.

    Attributes:
        width: Of the whole.
        height: Of the whole.
        nodes: Middle of each node.
        edges: Per edge the points it runs through, from the lower end of its source to the upper end of its target.
    """

    width: int
    height: int
    nodes: list[Point]
    edges: list[list[Point]]


def lay_out(count: int, edges: Sequence[tuple[int, int]]) -> Layout:
    """Place a graph.

    Args:
        count: Of nodes; every edge leads from one to a later one.
        edges: Source and target.
    """
    return _Drawing(count, edges).run()


class _Drawing:
    """Vertices are the nodes 0 to count - 1 and, behind them, the ghosts."""

    def __init__(self, count: int, edges: Sequence[tuple[int, int]]) -> None:
        self._count = count
        self._edges = edges
        self._layer = _layers(count, edges)
        self._above: list[list[int]] = [[] for _ in range(count)]
        self._below: list[list[int]] = [[] for _ in range(count)]
        self._ghosts: dict[tuple[int, int], int] = {}
        self._paths = [self._path(source, target) for source, target in edges]
        self._rows: list[list[int]] = [[] for _ in range(max(self._layer, default=-1) + 1)]
        for vertex, layer in enumerate(self._layer):
            self._rows[layer].append(vertex)
        self._place = [0.0] * len(self._layer)

    def run(self) -> Layout:
        self._order()
        self._assign()
        left = min((x - self._width(v) / 2 for v, x in enumerate(self._place)), default=0)
        right = max((x + self._width(v) / 2 for v, x in enumerate(self._place)), default=0)
        x = [round(place - left) + _GAP for place in self._place]
        y = [layer * _LAYER_HEIGHT + _GAP + NODE_HEIGHT // 2 for layer in self._layer]
        half = NODE_HEIGHT // 2
        lines = []
        for path in self._paths:
            # From the lower end of a vertex to the upper end of the next one: lines bend between layers, beside no node.
            points = [(x[v], y[v] + side) for v in path for side in (-half, half)][1:-1]
            lines.append(_without_straight(points))
        height = len(self._rows) * _LAYER_HEIGHT + 2 * _GAP - (_LAYER_HEIGHT - NODE_HEIGHT)
        return Layout(round(right - left) + 2 * _GAP, height, list(zip(x, y, strict=True))[: self._count], lines)

    def _path(self, source: int, target: int) -> list[int]:
        """The vertices of an edge; ghosts of the same source and layer are shared."""
        path = [source]
        for layer in range(self._layer[source] + 1, self._layer[target]):
            ghost = self._ghosts.get((source, layer))
            if ghost is None:
                ghost = self._ghosts[source, layer] = len(self._layer)
                self._layer.append(layer)
                self._above.append([])
                self._below.append([])
                self._connect(path[-1], ghost)
            path.append(ghost)
        self._connect(path[-1], target)
        return [*path, target]

    def _connect(self, upper: int, lower: int) -> None:
        if lower not in self._below[upper]:
            self._below[upper].append(lower)
            self._above[lower].append(upper)

    def _order(self) -> None:
        """Sort each layer by the mean position of its neighbours, downwards and upwards in turn."""
        for sweep in range(_ORDER_SWEEPS):
            neighbours = self._below if sweep % 2 else self._above
            position = [0.0] * len(self._layer)
            for row in reversed(self._rows) if sweep % 2 else self._rows:
                for index, vertex in enumerate(row):
                    position[vertex] = index / len(row)
                means = {v: fmean(position[n] for n in neighbours[v]) if neighbours[v] else position[v] for v in row}
                row.sort(key=means.__getitem__)
                for index, vertex in enumerate(row):
                    position[vertex] = index / len(row)

    def _assign(self) -> None:
        """Move each layer as close to its neighbours as the order and the widths allow, around a spine that is straight."""
        spine = self._spine()
        for sweep in range(_PLACE_SWEEPS):
            columns = self._columns()
            neighbours = self._below if sweep % 2 else self._above
            for row in reversed(self._rows) if sweep % 2 else self._rows:
                wanted = [
                    0.0 if v in spine else columns[v] if v in columns else self._mean(v, neighbours[v]) for v in row
                ]
                weights = [_SPINE_WEIGHT if v in spine else _GHOST_WEIGHT if v in columns else 1.0 for v in row]
                gaps = [(self._width(a) + self._width(b)) / 2 + _GAP for a, b in pairwise(row)]
                for vertex, place in zip(row, _separated(wanted, weights, gaps), strict=True):
                    self._place[vertex] = place

    def _spine(self) -> set[int]:
        """A path through the most nodes, in the middle of layers where there is a choice."""
        length = [0.0] * len(self._layer)
        before = [-1] * len(self._layer)
        for row in self._rows:
            for index, vertex in enumerate(row):
                if self._above[vertex]:
                    before[vertex] = max(self._above[vertex], key=length.__getitem__)
                    length[vertex] = length[before[vertex]]
                aside = abs(index - (len(row) - 1) / 2) / len(row)
                length[vertex] += 1 - aside / len(self._rows) if vertex < self._count else 0
        vertex = max(range(len(length)), key=length.__getitem__, default=-1)
        found: set[int] = set()
        while vertex >= 0:
            found.add(vertex)
            vertex = before[vertex]
        return found

    def _columns(self) -> dict[int, float]:
        """Where each ghost wants to be: with all ghosts of its source, as far from the middle as the outermost of them has to."""
        outermost: dict[int, float] = {}
        for (source, _), ghost in self._ghosts.items():
            outermost[source] = max(outermost.get(source, 0.0), self._place[ghost], key=abs)
        return {ghost: outermost[source] for (source, _), ghost in self._ghosts.items()}

    def _mean(self, vertex: int, neighbours: list[int]) -> float:
        return fmean(self._place[n] for n in neighbours) if neighbours else self._place[vertex]

    def _width(self, vertex: int) -> int:
        return NODE_WIDTH if vertex < self._count else _GHOST_WIDTH


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The length of the longest path to each node; a node that nothing leads to stands right above its first reader."""
    layer = [0] * count
    has_source = [False] * count
    for source, target in sorted(edges, key=lambda edge: edge[0]):
        layer[target] = max(layer[target], layer[source] + 1)
        has_source[target] = True
    first = [count] * count
    for source, target in edges:
        first[source] = min(first[source], layer[target])
    return [
        layer[node] if has_source[node] or first[node] == count else max(first[node] - 1, 0) for node in range(count)
    ]


def _separated(wanted: list[float], weights: list[float], gaps: list[float]) -> list[float]:
    """The places next to the wanted ones, in the weighted sum of squares, that keep the gaps: neighbours that collide become one block."""
    offsets = [0.0]
    for gap in gaps:
        offsets.append(offsets[-1] + gap)
    blocks: list[tuple[float, float, int]] = []  # middle, weight, members
    for want, weight, offset in zip(wanted, weights, offsets, strict=False):
        middle, heavy, members = want - offset, weight, 1
        while blocks and blocks[-1][0] > middle:
            other, other_weight, other_members = blocks.pop()
            middle = (middle * heavy + other * other_weight) / (heavy + other_weight)
            heavy += other_weight
            members += other_members
        blocks.append((middle, heavy, members))
    places = [middle for middle, _, members in blocks for _ in range(members)]
    return [place + offset for place, offset in zip(places, offsets, strict=False)]


def _without_straight(points: list[Point]) -> list[Point]:
    """The points at which a line changes its direction, with its ends."""
    kept = [
        here
        for before, here, after in zip(points, points[1:], points[2:], strict=False)
        if not before[0] == here[0] == after[0]
    ]
    return [points[0], *kept, points[-1]]
