"""Convex regions of a dependency graph, as few and as large as a greedy search finds; plain numbers, no models."""

from collections.abc import Collection, Sequence

Colour = int | None
"""What may be in one region: nodes of one colour. None: in no region."""


def convex_regions(
    sources: Sequence[set[int]],
    links: Sequence[tuple[int, int]],
    colours: Sequence[Colour],
    late: Collection[int] = (),
) -> list[list[int]]:
    """Group linked nodes of one colour such that the graph of groups has no cycle.

    So no path leaves a region and comes back, neither through nodes outside regions nor through other regions. First come the regions
    that alternating levels give: a node's level is the number of changes of colour on the way to it, and nodes of one level and colour
    never wait for each other through others. Then linked regions merge while no path outside them connects them.

    Args:
        sources: per node, in topological order, the nodes it depends on.
        links: pairs of nodes that share a value.
        colours: per node.
        late: nodes that belong to the first region that reads them rather than to the one they read from.

    Returns:
        Regions, each with its nodes in order; no two linked ones of one colour could merge.
    """
    groups = _Groups(sources, colours)
    levels = _levels(sources, colours, late)
    for a, b in links:
        if colours[a] is not None and colours[a] == colours[b] and levels[a] == levels[b]:
            groups.unite(a, b)
    groups.contract()
    while groups.merge_any(links):
        pass
    return groups.regions()


def _levels(sources: Sequence[set[int]], colours: Sequence[Colour], late: Collection[int]) -> list[int]:
    """The lowest level that a node can have; the highest one for late nodes that something reads."""
    levels: list[int] = []
    readers: list[list[int]] = [[] for _ in sources]
    for index, before in enumerate(sources):
        levels.append(max((levels[s] + (colours[s] != colours[index]) for s in before), default=0))
        for source in before:
            readers[source].append(index)
    for index in sorted(late, reverse=True):
        levels[index] = min((levels[r] - (colours[r] != colours[index]) for r in readers[index]), default=levels[index])
    return levels


class _Groups:
    """Disjoint groups of nodes and the edges between them."""

    def __init__(self, sources: Sequence[set[int]], colours: Sequence[Colour]) -> None:
        self._sources = sources
        self._colours = colours
        self._parent = list(range(len(sources)))
        self._next: dict[int, set[int]] = {}

    def find(self, node: int) -> int:
        while self._parent[node] != node:
            self._parent[node] = self._parent[self._parent[node]]
            node = self._parent[node]
        return node

    def unite(self, a: int, b: int) -> None:
        first, second = sorted((self.find(a), self.find(b)))
        self._parent[second] = first

    def contract(self) -> None:
        """Find the edges between groups."""
        self._next = {self.find(node): set() for node in range(len(self._sources))}
        for node, before in enumerate(self._sources):
            for source in before:
                if self.find(source) != self.find(node):
                    self._next[self.find(source)].add(self.find(node))

    def merge_any(self, links: Sequence[tuple[int, int]]) -> bool:
        """Merge linked groups where nothing outside lies between them; returns whether any were."""
        merged = False
        for a, b in links:
            first, second = self.find(a), self.find(b)
            if first == second or self._colours[a] is None or self._colours[a] != self._colours[b]:
                continue
            if self._leads_around(first, second) or self._leads_around(second, first):
                continue
            self.unite(first, second)
            self.contract()
            merged = True
        return merged

    def _leads_around(self, start: int, end: int) -> bool:
        """Whether a path from `start` reaches `end` through another group."""
        stack = [group for group in self._next[start] if group != end]
        seen = set(stack)
        while stack:
            for group in self._next[stack.pop()]:
                if group == end:
                    return True
                if group not in seen:
                    seen.add(group)
                    stack.append(group)
        return False

    def regions(self) -> list[list[int]]:
        """Members per group that has a colour, groups by their first member."""
        members: dict[int, list[int]] = {}
        for node, colour in enumerate(self._colours):
            if colour is not None:
                members.setdefault(self.find(node), []).append(node)
        return list(members.values())
