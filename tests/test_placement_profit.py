"""The hop rule: what is worth a crossing is kept, what is not is dropped with the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import untaken
from hipdnn_mlir.placement import Placement, place
from hipdnn_mlir.placement.cost import node_us, program_us
from hipdnn_mlir.placement.graph import read_graph
from hipdnn_mlir.placement.shapes import infer_types
from hipdnn_mlir.targets import table


def build(text: str, **weights: Sequence[int]) -> onnx.ModelProto:
    """A model with weights of the given dims."""
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 21, {untaken.OPSET_TEXT}]>\n{untaken.in_text(text)}'
    )
    rng = np.random.default_rng(0)
    for name, dims in weights.items():
        made.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(dims, np.float32), name))
    for node in made.graph.node:
        node.name = f"n_{node.output[0]}"
    return onnx.shape_inference.infer_shapes(made)


def kept(placement: Placement) -> list[list[str]]:
    return [partition.nodes for partition in placement.partitions]


TINY_ADD = "g (float[4] x) => (float[4] y) { a = Untaken(x) b = Add(a, a) y = Untaken(b) }"


def test_tiny_add_between_cpu_nodes_is_dropped_with_the_numbers() -> None:
    placement = place(build(TINY_ADD))
    assert kept(placement) == []
    assert placement.dropped == [(["n_b"], "hops to and from the CPU (2) cost 2.0 us, running here gains 0.0 us")]
    assert placement.graphs == 0


def test_tiny_add_between_cpu_nodes_is_kept_when_everything_is() -> None:
    placement = place(build(TINY_ADD), mode="maximal")
    assert kept(placement) == [["n_b"]]
    assert placement.dropped == []


def test_large_convolution_between_cpu_nodes_is_kept() -> None:
    text = "g (float[1,64,56,56] x) => (float[1,64,56,56] y) { a = Untaken(x) b = Conv<pads=[1,1,1,1]>(a, w) y = Untaken(b) }"
    assert kept(place(build(text, w=(64, 64, 3, 3)))) == [["n_b"]]


def test_tiny_model_is_kept_when_all_of_it_runs_here() -> None:
    assert kept(place(build("g (float[4] x) => (float[4] y) { y = Add(x, x) }"))) == [["n_y"]]


def test_inputs_outputs_and_constants_are_no_hops() -> None:
    text = "g (float[4] x) => (float[4] y, float[4] z) { y = Add(x, w) z = Untaken(x) }"
    placement = place(build(text, w=(4,)))
    assert kept(placement) == [["n_y"]]


def test_chain_of_small_nodes_is_kept_when_one_graph_replaces_them() -> None:
    text = (
        "g (float[4] x) => (float[4] y) { a = Untaken(x) b = Relu(a) c = Tanh(b) d = Exp(c) e = Neg(d) y = Untaken(e) }"
    )
    assert kept(place(build(text))) == [["n_b", "n_c", "n_d", "n_e"]]


def test_data_movement_alone_gains_nothing() -> None:
    text = "g (float[512,512] x) => (float[512,512] y) { a = Untaken(x) b = Transpose(a) y = Untaken(b) }"
    placement = place(build(text))
    assert kept(placement) == []
    assert placement.dropped == [(["n_b"], "hops to and from the CPU (2) cost 2.0 us, running here gains 0.0 us")]


def test_data_movement_alone_is_kept_without_hops() -> None:
    text = "g (float[8,4] x) => (float[4,8] y, float[8,4] z) { y = Transpose(x) z = Untaken(x) }"
    assert kept(place(build(text))) == [["n_y"]]


def test_value_with_many_readers_is_one_hop() -> None:
    text = """g (float[4] x) => (float[4] y, float[4] z) {
        a = Untaken(x) b = Relu(a) c = Tanh(a) d = Exp(a) e = Add(b, c) f = Add(e, d) y = Untaken(f) z = Untaken(f) }"""
    placement = place(build(text))
    assert kept(placement) == [["n_b", "n_c", "n_d", "n_e", "n_f"]]


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("b = Add(a, t)", []),
        ("c = Add(a, t) d = Exp(c) e = Neg(d) b = Tanh(e)", [["n_r", "n_a"], ["n_c", "n_d", "n_e", "n_b"]]),
    ],
)
def test_partition_falls_with_its_neighbour_when_that_adds_a_hop(tail: str, expected: list[list[str]]) -> None:
    """Of two nodes in one graph that pay for one hop, to `t`; the value `a` is another one where its reader is on the CPU."""
    text = f"g (float[4] x) => (float[4] y) {{ r = Relu(x) a = Tanh(r) t = Untaken(r) {tail} y = Untaken(b) }}"
    placement = place(build(text))
    assert kept(placement) == expected
    assert [nodes for nodes, _ in placement.dropped] == ([] if expected else [["n_b"], ["n_r", "n_a"]])


def free_link(monkeypatch: pytest.MonkeyPatch, **changes: float) -> None:
    cost = replace(table.HOST.cost, **changes)
    monkeypatch.setitem(table.TARGETS, "host", replace(table.HOST, cost=cost))


def test_hops_cost_their_bytes_when_the_link_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "g (float[1,64,56,56] x) => (float[1,64,56,56] y) { a = Untaken(x) b = Conv<pads=[1,1,1,1]>(a, w) y = Untaken(b) }"
    model = build(text, w=(64, 64, 3, 3))
    free_link(monkeypatch, link_bytes_per_us=1e3)
    placement = place(model)
    assert kept(placement) == []
    assert f"cost {2 * (1 + 64 * 56 * 56 * 4 / 1e3):.1f} us" in placement.dropped[0][1]


def test_tiny_add_is_kept_when_hops_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    free_link(monkeypatch, hop_us=0.0)
    assert kept(place(build(TINY_ADD))) == [["n_b"]]


RATES = table.Rates(start_us=0.0, flops_per_us=1.0, bytes_per_us=1e9)
"""Time is the number of floating-point operations."""


@pytest.mark.parametrize(
    ("text", "weights", "flops"),
    [
        (
            "g (float[2,16,9,9] x) => (float[2,6,4,4] y) { y = Conv<strides=[2,2],group=2>(x, w) }",
            {"w": (6, 8, 3, 3)},
            2 * 2 * 6 * 16 * 8 * 9,
        ),
        (
            "g (float[2,8,5,5] x) => (float[2,6,7,7] y) { y = ConvTranspose(x, w) }",
            {"w": (8, 6, 3, 3)},
            2 * 2 * 8 * 25 * 6 * 9,
        ),
        ("g (float[3,5,7] x) => (float[3,5,4] y) { y = MatMul(x, w) }", {"w": (7, 4)}, 2 * 3 * 5 * 7 * 4),
        ("g (float[7,5] x) => (float[5,4] y) { y = Gemm<transA=1>(x, w) }", {"w": (7, 4)}, 2 * 5 * 7 * 4),
        ("g (float[5] x) => (float[5] y) { y = Exp(x) }", {}, 0),
    ],
)
def test_arithmetic_is_counted_alike_on_both_sides(text: str, weights: dict[str, Sequence[int]], flops: int) -> None:
    model = build(text, **weights)
    graph = read_graph(model)
    assert node_us(graph, infer_types(graph), 0, RATES) == pytest.approx(flops, abs=1e-3)
    (partition,) = place(model).partitions
    model_cost = replace(table.HOST.cost, device=RATES)
    assert program_us(partition.lowered.model, model_cost) == pytest.approx(flops, abs=1e-3)


def test_bytes_count_once_per_stored_tensor_of_a_graph() -> None:
    rates = table.Rates(start_us=0.0, flops_per_us=1e9, bytes_per_us=1.0)
    model = build("g (float[10] x) => (float[10] y) { a = Exp(x) b = Neg(a) y = Mul(b, b) }")
    graph = read_graph(model)
    types = infer_types(graph)
    assert [node_us(graph, types, index, rates) for index in range(3)] == [80, 80, 80]
    (partition,) = place(model).partitions
    assert program_us(partition.lowered.model, replace(table.HOST.cost, device=rates)) == 80


def test_larger_of_arithmetic_and_memory_decides() -> None:
    rates = table.Rates(start_us=2.0, flops_per_us=10.0, bytes_per_us=5.0)
    assert rates.time_us(flops=100, moved_bytes=20) == 12
    assert rates.time_us(flops=10, moved_bytes=20) == 6
