"""Groups of ops against a brute-force search for paths, on random programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch_mlir import ir

from drawing import draws
from hipdnn_mlir.ir.blocks import functions, operations
from hipdnn_mlir.ir.dialect import make_context
from hipdnn_mlir.ir.partition import Partition

TYPE = "!torch.vtensor<[2],f32>"
Edges = list[tuple[int, int]]


@pytest.fixture(scope="module")
def context() -> Iterator[ir.Context]:
    context = make_context()
    with context, ir.Location.unknown():
        yield context


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Per op the two values it reads: -1 the argument, else the result of an earlier op."""
    count = draw(st.integers(2, 9))
    return [(draw(st.integers(-1, at - 1)), draw(st.integers(-1, at - 1))) for at in range(count)]


def build(program: Edges) -> tuple[ir.Module, list[Any]]:
    """The module, which owns the ops, and its ops."""
    names = {-1: "%x", **{at: f"%v{at}" for at in range(len(program))}}
    text = "\n".join(
        f"{names[at]} = torch.aten.maximum {names[a]}, {names[b]} : {TYPE}, {TYPE} -> {TYPE}"
        for at, (a, b) in enumerate(program)
    )
    result = names[len(program) - 1]
    module = ir.Module.parse(f"func.func @main(%x: {TYPE}) -> {TYPE} {{\n{text}\nreturn {result} : {TYPE}\n}}")
    return module, operations(functions(module.operation)[0])[:-1]


def group_edges(program: Edges, group: Sequence[int]) -> set[tuple[int, int]]:
    """Reads between groups."""
    edges = {(group[source], group[at]) for at, sources in enumerate(program) for source in sources if source >= 0}
    return {(a, b) for a, b in edges if a != b}


def has_cycle(edges: set[tuple[int, int]], nodes: set[int]) -> bool:
    """Whether some node reaches itself: nodes without a predecessor are taken away until none is left."""
    left = set(nodes)
    while True:
        free = {node for node in left if not any(b == node and a in left for a, b in edges)}
        if not free:
            return bool(left)
        left -= free


@pytest.mark.usefixtures("context")
@draws(150)
@given(st.data())
def test_is_convex_is_freedom_from_cycles(data: st.DataObject) -> None:
    program = data.draw(programs())
    _module, operations = build(program)
    partition = Partition(operations)
    group = list(range(len(program)))
    for _ in range(data.draw(st.integers(1, 4))):
        chosen = data.draw(st.sets(st.integers(0, len(program) - 1), min_size=1))
        chosen |= {at for at in range(len(program)) if group[at] in {group[c] for c in chosen}}
        merged = [max(chosen) if at in chosen else group[at] for at in range(len(program))]
        acyclic = not has_cycle(group_edges(program, merged), set(merged))
        assert partition.is_convex([operations[at] for at in chosen]) == acyclic, (program, group, chosen)
        if acyclic:
            assert partition.merge([operations[at] for at in chosen]) == max(chosen)
            group = merged


@pytest.mark.usefixtures("context")
def test_is_convex_sees_a_path_through_a_group_that_lies_around_the_ops() -> None:
    _module, operations = build([(-1, -1), (0, 0), (-1, -1), (1, 1), (0, 2)])
    partition = Partition(operations)
    partition.merge([operations[0], operations[4]])
    assert not partition.is_convex([operations[2], operations[3]])  # 3 reads 1, which reads 0, whose group reads 2


@pytest.mark.usefixtures("context")
@draws(100)
@given(st.data())
def test_ordered_groups_puts_every_group_behind_what_it_reads(data: st.DataObject) -> None:
    program = data.draw(programs())
    _module, operations = build(program)
    partition = Partition(operations)
    for _ in range(data.draw(st.integers(0, 3))):
        chosen = sorted(data.draw(st.sets(st.integers(0, len(program) - 1), min_size=1)))
        taken = {partition.group(operations[at]) for at in chosen}
        members = partition.members(sorted(taken), [operations[at] for at in chosen])
        if partition.is_convex(members):
            partition.merge(members)
    group = [partition.group(operation) for operation in operations]
    order = partition.ordered_groups()
    assert sorted(order) == sorted(set(group))
    position = {number: at for at, number in enumerate(order)}
    assert all(position[a] < position[b] for a, b in group_edges(program, group))


@pytest.mark.usefixtures("context")
def test_producers_are_merged_groups_only_latest_first() -> None:
    _module, operations = build([(-1, -1), (-1, -1), (0, 1), (1, 0)])
    partition = Partition(operations)
    assert partition.producers(operations[2]) == []
    first, second = partition.merge([operations[0]]), partition.merge([operations[1]])
    assert partition.producers(operations[2]) == [second, first]


@pytest.mark.usefixtures("context")
def test_merge_takes_members_out_of_the_groups_they_were_in() -> None:
    _module, operations = build([(-1, -1), (0, 0), (1, 1)])
    partition = Partition(operations)
    first = partition.merge(operations[:2])
    second = partition.merge(operations[1:])
    assert [partition.group(operation) for operation in operations] == [first, second, second]
    assert partition.members([first], []) == operations[:1]
