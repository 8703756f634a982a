"""Convex regions of random graphs: acyclic together, connected, of one colour, and none that could merge."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drawing import draws
from hipdnn_mlir.placement.regions import convex_regions

Edges = list[set[int]]
Graph = tuple[Edges, list[tuple[int, int]], list[int | None], set[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Sources per node, pairs that share a value (producer and reader, readers of one result), colours, late nodes."""
    count = draw(st.integers(0, 16))
    sources: Edges = [
        draw(st.sets(st.integers(max(0, index - 6), index - 1), max_size=3)) if index else set()
        for index in range(count)
    ]
    links = [(source, index) for index, before in enumerate(sources) for source in sorted(before)]
    links += [
        (a, b) for a in range(count) for b in range(a + 1, count) if sources[a] & sources[b] and draw(st.booleans())
    ]
    colours = [draw(st.sampled_from([None, 0, 0, 0, 1])) for _ in range(count)]
    return sources, links, colours, draw(st.sets(st.integers(0, count - 1))) if count else set()


def has_cycle(sources: Edges, groups: list[list[int]]) -> bool:
    """Whether the graph of groups has a cycle: drop groups that wait for nothing until none is left."""
    home = {node: index for index, group in enumerate(groups) for node in group}
    waits = [{home[s] for node in group for s in sources[node]} - {index} for index, group in enumerate(groups)]
    left = set(range(len(groups)))
    while ready := {index for index in left if not waits[index] & left}:
        left -= ready
    return bool(left)


def with_singles(regions: list[list[int]], count: int) -> list[list[int]]:
    inside = {node for region in regions for node in region}
    return regions + [[node] for node in range(count) if node not in inside]


@draws(250)
@given(graphs())
def test_regions_are_acyclic_connected_and_maximal(graph: Graph) -> None:
    sources, links, colours, late = graph
    regions = convex_regions(sources, links, colours, late)
    assert sorted(n for region in regions for n in region) == [
        n for n, colour in enumerate(colours) if colour is not None
    ]
    assert not has_cycle(sources, with_singles(regions, len(sources)))
    for region in regions:
        assert region == sorted(region)
        assert len({colours[node] for node in region}) == 1
        reached, inside = {region[0]}, set(region)
        while grown := {n for pair in links for n in pair if set(pair) & reached and set(pair) <= inside} - reached:
            reached |= grown
        assert reached == inside
    for a, b in links:
        first, second = (next((r for r in regions if n in r), None) for n in (a, b))
        if first is None or second is None or first is second or colours[a] != colours[b]:
            continue
        merged = [r for r in regions if r is not first and r is not second] + [first + second]
        assert has_cycle(sources, with_singles(merged, len(sources))), f"{first} and {second} could be one"


def test_late_node_goes_to_its_reader_where_it_could_also_stay_before() -> None:
    sources: Edges = [set(), {0}, {0}, {1, 2}]
    links = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    assert convex_regions(sources, links, [0, None, 0, 0]) == [[0, 2], [3]]
    assert convex_regions(sources, links, [0, None, 0, 0], late=[2]) == [[0], [2, 3]]


def test_chain_is_cut_at_a_node_without_colour() -> None:
    sources: Edges = [set(), {0}, {1}, {2}]
    links = [(0, 1), (1, 2), (2, 3)]
    assert convex_regions(sources, links, [0, None, 0, 0]) == [[0], [2, 3]]


def test_nodes_without_a_shared_value_stay_apart() -> None:
    assert convex_regions([set(), set()], [], [0, 0]) == [[0], [1]]


def test_readers_of_one_value_are_one_region() -> None:
    assert convex_regions([set(), {0}, {0}], [(0, 1), (0, 2), (1, 2)], [None, 0, 0]) == [[1, 2]]
