"""Placement: what is claimed compiles, has no path back into itself, and computes with the rest what ONNX Runtime computes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper, parser

import models
import untaken
from drawing import draws
from hipdnn_mlir.placement import Placement, place
from hipdnn_mlir_runtime.errors import ModelError
from placement_checks import assert_equals_onnxruntime

RNG = np.random.default_rng(0)


def build(text: str, opset: int = 21, **weights: np.ndarray) -> onnx.ModelProto:
    """A model from ONNX's text form with named nodes and the types that ONNX infers, as a host knows them."""
    opsets = [f'"" : {opset}', untaken.OPSET_TEXT, *(['"com.microsoft" : 1'] if "com.microsoft" in text else [])]
    made = parser.parse_model(f"<ir_version: 8, opset_import: [{', '.join(opsets)}]>\n{untaken.in_text(text)}")
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    for node in made.graph.node:
        node.name = node.name or f"n_{node.output[0]}"
    return onnx.shape_inference.infer_shapes(made, data_prop=True)


def normal(*dims: int) -> np.ndarray:
    return RNG.standard_normal(dims, np.float32)


def nodes_of(placement: Placement) -> list[list[str]]:
    return [partition.nodes for partition in placement.partitions]


def rejected(placement: Placement) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for reject in placement.rejects:
        found.setdefault(reject.node, set()).add(reject.rule)
    return found


def test_whole_model_is_one_partition_when_everything_compiles() -> None:
    model = models.resnet(2)
    placement = place(model)
    assert nodes_of(placement) == [[node.name for node in model.graph.node]]
    assert (placement.rejects, placement.dropped) == ([], [])
    assert placement.nodes == len(model.graph.node)
    assert placement.graphs >= 12


def test_partitions_lie_around_a_node_that_no_engine_takes() -> None:
    model = build("g (float[4,8] x) => (float[4,8] y) { a = Relu(x) b = Untaken(a) c = Tanh(b) y = Exp(c) }")
    placement = place(model, mode="maximal")
    assert nodes_of(placement) == [["n_a"], ["n_c", "n_y"]]
    assert rejected(placement) == {"n_b": {"no-row"}}
    assert_equals_onnxruntime(model, placement, {"x": normal(4, 8)})


def test_side_path_through_the_cpu_splits_a_region() -> None:
    text = "g (float[4] x) => (float[4] y) { a = Relu(x) b = Untaken(a) c = Tanh(a) y = Add(b, c) }"
    placement = place(build(text), mode="maximal")
    assert nodes_of(placement) == [["n_a", "n_c"], ["n_y"]]
    assert_equals_onnxruntime(build(text), placement, {"x": normal(4)})


def test_late_operand_from_the_cpu_leaves_a_region_whole_when_nothing_comes_back() -> None:
    text = """g (float[4] x, float[4] z) => (float[4] y) {
        a = Relu(x) b = Tanh(a) s = Abs(z) t = Untaken(s) y = Add(b, t) }"""
    placement = place(build(text), mode="maximal")
    assert nodes_of(placement) == [["n_a", "n_b", "n_y"], ["n_s"]]
    assert_equals_onnxruntime(build(text), placement, {"x": normal(4), "z": normal(4)})


def test_two_regions_do_not_wait_for_each_other_when_each_alone_is_convex() -> None:
    text = """g (float[4] x, float[4] z) => (float[4] y, float[4] w) {
        a = Relu(x) b = Tanh(z) c = Untaken(a) d = Untaken(b) e = Mul(b, c) f = Mul(a, d) y = Exp(e) w = Exp(f) }"""
    model = build(text)
    placement = place(model, mode="maximal")
    assert sum(map(len, nodes_of(placement))) == 6
    assert_equals_onnxruntime(model, placement, {"x": normal(4), "z": normal(4)})


def test_nothing_is_placed_when_no_node_is_taken() -> None:
    model = build("g (float[4,4] x) => (float y, float z) { y = Det(x) a = Relu(x) z = Det(a) }")
    placement = place(model)
    assert nodes_of(placement) == []
    assert set(rejected(placement)) >= {"n_y", "n_z"}
    assert placement.graphs == 0


def test_empty_graph_has_no_partition() -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    model = helper.make_model(helper.make_graph([], "g", [value], [value]), opset_imports=[helper.make_opsetid("", 21)])
    placement = place(model)
    assert (nodes_of(placement), placement.rejects, placement.nodes) == ([], [], 0)


def test_open_batch_is_tried_and_compiled_for_the_sizes_of_a_run() -> None:
    text = """g (float[N,8] x) => (float[N,8] y) {
        a = MatMul(x, w) b = Untaken(a) c = MatMul(b, w) y = Relu(c) }"""
    model = build(text, w=normal(8, 8))
    placement = place(model, mode="maximal")
    assert nodes_of(placement) == [["n_a"], ["n_c", "n_y"]]
    assert all(partition.is_dynamic for partition in placement.partitions)
    for batch in (1, 5):
        assert_equals_onnxruntime(model, placement, {"x": normal(batch, 8)})


def test_dynamic_dimension_is_tried_with_one_when_the_model_insists() -> None:
    text = "g (float[N,4] x) => (float[1,4] y) { a = Concat<axis=0>(x, k) b = Relu(a) c = Add(b, w) y = ReduceSum<axes=[0]>(c) }"
    model = build(text, opset=12, k=normal(2, 4), w=normal(3, 4))
    placement = place(model)
    assert len(placement.partitions) == 1
    assert placement.partitions[0].is_dynamic
    assert_equals_onnxruntime(model, placement, {"x": normal(1, 4)})


def test_open_image_size_is_tried_large_when_small_images_vanish() -> None:
    text = "g (float[1,3,H,W] x) => (float[1,4,P,Q] y) { a = Conv(x, w) b = Relu(a) y = MaxPool<kernel_shape=[3,3],strides=[2,2]>(b) }"
    model = build(text, w=normal(4, 3, 5, 5))
    placement = place(model)
    assert nodes_of(placement) == [["n_a", "n_b", "n_y"]]
    assert_equals_onnxruntime(model, placement, {"x": normal(1, 3, 17, 31)})


def test_partition_is_static_when_only_other_parts_of_the_model_are_open() -> None:
    text = """g (float[N,4] x, float[3,4] z) => (float[N,4] y, float[3,4] w) {
        a = Relu(x) y = Untaken(a) b = Untaken(z) w = Relu(b) }"""
    placement = place(build(text), mode="maximal")
    assert {tuple(p.nodes): p.is_dynamic for p in placement.partitions} == {("n_a",): True, ("n_w",): False}


def test_shape_arithmetic_is_folded_inside_a_dynamic_partition() -> None:
    text = """g (float[N,2,4] x) => (float[N,8] y) {
        s = Shape(x) n = Slice(s, zero, one) t = Concat<axis=0>(n, rest) r = Reshape(x, t) y = Relu(r) }"""
    model = build(text, zero=np.array([0]), one=np.array([1]), rest=np.array([8]))
    placement = place(model)
    assert len(placement.partitions) == 1
    for batch in (1, 6):
        assert_equals_onnxruntime(model, placement, {"x": normal(batch, 2, 4)})


def test_shape_arithmetic_is_compiled_where_its_result_is_needed() -> None:
    """The new shape follows from the input, and stands on the other side of a node on the CPU."""
    text = """g (float[N,8] x) => (float[N,2,4] y) {
        s = Shape(x) n = Slice(s, zero, one) t = Concat<axis=0>(n, rest) a = Relu(x) b = Untaken(a) r = Reshape(b, t) y = Tanh(r) }"""
    model = build(text, zero=np.array([0]), one=np.array([1]), rest=np.array([2, 4]))
    placement = place(model, mode="maximal")
    assert nodes_of(placement) == [["n_s", "n_n", "n_t", "n_r", "n_y"], ["n_a"]]
    for batch in (1, 6):
        assert_equals_onnxruntime(model, placement, {"x": normal(batch, 8)})


def test_what_follows_a_data_dependent_shape_is_rejected_with_the_reason() -> None:
    text = """g (float[3,4] x) => (int64[2,K] y, float[3,4] z) {
        a = Relu(x) i = NonZero(a) y = Add(i, one) z = Exp(a) }"""
    model = build(text, one=np.array([1]))
    placement = place(model)
    assert nodes_of(placement) == [["n_a", "n_z"]]
    assert rejected(placement) == {"n_i": {"dynamic-shape"}, "n_y": {"dynamic-shape"}}
    assert "not known" in placement.rejects[0].reason
    assert_equals_onnxruntime(model, placement, {"x": normal(3, 4)})


def branching() -> onnx.ModelProto:
    """An If whose branches read values of the main graph."""
    text = """g (float[4] x, bool c) => (float[4] y, float[4] z) {
        a = Relu(x) b = Tanh(x)
        t = If<then_branch = g1 () => (float[4] u) { u = Untaken(b) }, else_branch = g2 () => (float[4] v) { v = Neg(a) }>(c)
        y = Mul(t, b) z = Exp(b) }"""
    return build(text)


def test_value_read_by_a_subgraph_counts_as_read_by_its_node() -> None:
    model = branching()
    placement = place(model, mode="maximal")
    assert rejected(placement) == {"n_t": {"subgraph"}}
    assert sorted(map(sorted, nodes_of(placement))) == [["n_a", "n_b", "n_z"], ["n_y"]]
    for condition in (True, False):
        assert_equals_onnxruntime(model, placement, {"x": normal(4), "c": np.array(condition)})


def test_context_node_is_left_alone() -> None:
    text = """g (float[4] x) => (float[4] y) {
        a = Relu(x) b = com.microsoft.EPContext<embed_mode=1, ep_cache_context="abc">(a) y = Tanh(b) }"""
    model = build(text)
    model.graph.value_info.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [4]))
    placement = place(model, mode="maximal")
    assert nodes_of(placement) == [["n_a"], ["n_y"]]
    assert rejected(placement) == {"n_b": {"compiled"}}


def test_operator_of_another_domain_is_rejected_by_name() -> None:
    text = "g (float[4,4] x) => (float[4,4] y) { a = Relu(x) b = com.microsoft.Inverse(a) y = Tanh(b) }"
    model = build(text)
    model.graph.value_info.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [4, 4]))
    placement = place(model, mode="maximal")
    assert nodes_of(placement) == [["n_a"], ["n_y"]]
    assert set(rejected(placement)) == {"n_b"}
    assert_equals_onnxruntime(model, placement, {"x": np.eye(4, dtype=np.float32) + 0.1 * np.abs(normal(4, 4))})


def test_old_opset_is_placed_when_some_nodes_are_not_taken() -> None:
    text = """g (float[2,3,8,8] x) => (float[2,3] y) {
        a = BatchNormalization(x, s, b, m, v) c = Untaken(a) d = ReduceMean<axes=[2,3], keepdims=0>(c) e = Unsqueeze<axes=[0]>(d)
        f = Squeeze<axes=[0]>(e) y = Clip<min=0.0, max=1.0>(f) }"""
    vectors = {name: np.abs(normal(3)) for name in "sbmv"}
    for opset in (10, 9):
        model = build(text, opset=opset, **vectors)
        placement = place(model, mode="maximal")
        assert nodes_of(placement) == [["n_a"], ["n_d", "n_e", "n_f", "n_y"]]
        assert_equals_onnxruntime(model, placement, {"x": normal(2, 3, 8, 8)})


def test_opset_13_is_placed_when_the_upgrade_renames() -> None:
    text = """g (float[2,6] x) => (float[2,2] y) {
        a, b, c = Split<axis=1>(x, sizes) d = Untaken(a) e = Add(b, c) f = Mul(d, e) y = Softmax<axis=1>(f) }"""
    model = build(text, opset=13, sizes=np.array([2, 2, 2]))
    placement = place(model, mode="maximal")
    assert rejected(placement) == {"n_d": {"no-row"}}
    assert_equals_onnxruntime(model, placement, {"x": normal(2, 6)})


@pytest.mark.parametrize("name", ['quo"ted', "plus+minus", "back\\slash", "naïve", "n_a"])
def test_node_is_found_whatever_its_name(name: str) -> None:
    model = build("g (float[4] x) => (float[4] y) { a = Relu(x) b = Untaken(a) c = Tanh(b) y = Exp(c) }")
    model.graph.node[0].name = "first"
    model.graph.node[1].name = name
    placement = place(model, mode="maximal")
    assert nodes_of(placement) == [["first"], ["n_c", "n_y"]]
    assert set(rejected(placement)) == {name}


def test_type_without_a_row_is_rejected_where_it_shows() -> None:
    text = "g (float[4] x) => (string[4] y, float[4] z) { a = Relu(x) y = Cast<to=8>(a) z = Tanh(a) }"
    placement = place(build(text))
    assert nodes_of(placement) == [["n_a", "n_z"]]
    assert rejected(placement) == {"n_y": {"dtype"}}


def test_node_without_readers_is_left_to_the_host() -> None:
    model = build("g (float[4] x) => (float[4] y) { y = Untaken(x) a = Relu(x) }")
    placement = place(model)
    assert nodes_of(placement) == []
    assert rejected(placement) == {"n_y": {"no-row"}, "n_a": {"unused"}}


def test_nodes_may_stand_in_any_order() -> None:
    model = build("g (float[4] x) => (float[4] y) { a = Relu(x) b = Tanh(a) y = Exp(b) }")
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    assert nodes_of(place(model)) == [["n_a", "n_b", "n_y"]]


def test_cycle_is_a_model_error() -> None:
    model = build("g (float[4] x) => (float[4] y) { a = Relu(x) y = Tanh(a) }")
    model.graph.node[0].input[0] = "y"
    with pytest.raises(ModelError, match="depends on its own result"):
        place(model)


@pytest.mark.parametrize("arguments", [{"mode": "all"}, {"target": "moon"}])
def test_unknown_option_lists_the_known_ones(arguments: dict[str, str]) -> None:
    with pytest.raises(ModelError, match=r"unknown .*expected one of"):
        place(build("g (float[4] x) => (float[4] y) { y = Relu(x) }"), **arguments)


def test_model_is_not_changed_when_placed() -> None:
    model = build("g (float[N,64] x) => (float[N,8] y) { a = MatMul(x, w) y = Untaken(a) }", w=normal(64, 8))
    before = model.SerializeToString()
    place(model)
    assert model.SerializeToString() == before


def test_values_of_large_weights_decide_nothing() -> None:
    """An expansion to the sum of 300 floats: known to who looks at them, and a placement may not."""
    text = "g (float[1] x) => (float[K] y) { a = ReduceSum(w) b = Cast<to=7>(a) c = Relu(x) y = Expand(c, b) }"
    for total in (3, 5):
        weights = np.zeros(300, np.float32)
        weights[0] = total
        model = build(text, w=weights)
        placement = place(model, mode="maximal")
        assert rejected(placement) == {"n_y": {"dynamic-shape"}}
        assert_equals_onnxruntime(model, placement, {"x": normal(1)})


def test_rows_of_different_lengths_are_reduced_by_graphs_of_their_own() -> None:
    text = """g (float[2,5] x, float[2,6] z) => (float[2,1] y) {
        a = ReduceSum<keepdims=1>(x, axis) b = ReduceMean<keepdims=1>(z, axis) c = Sigmoid(b) y = Add(a, c) }"""
    model = build(text, axis=np.array([-1]))
    placement = place(model)
    assert placement.graphs == 2
    assert_equals_onnxruntime(model, placement, {"x": normal(2, 5), "z": normal(2, 6)})


@pytest.mark.parametrize(
    "body",
    [
        "(float[4,8] v, float[4,1,8] u, float[4,8] w) { v = Relu(x) u = Unsqueeze(v, one) w = Squeeze(u, one) }",
        "(float[4,8] v, float[32] u, float[4,8] w) { v = Relu(x) u = Reshape(v, flat) w = Reshape(u, dims) }",
        "(float[32] u, float[4,8] v, float[32] w) { r = Relu(x) u = Reshape(r, flat) v = Reshape(u, dims) w = Reshape(v, flat) }",
    ],
)
def test_results_are_apart_when_reshapes_make_them_equal(body: str) -> None:
    model = build(f"g (float[4,8] x) => {body}", one=np.array([1]), flat=np.array([-1]), dims=np.array([4, 8]))
    placement = place(model)
    assert len(placement.partitions) == 1
    assert_equals_onnxruntime(model, placement, {"x": normal(4, 8)})


SUPPORTED = ("Relu", "Tanh", "Neg", "Sigmoid")


def unary(op: str, read: str, written: str, name: str) -> onnx.NodeProto:
    return untaken.node(read, written, name) if op == untaken.OP else helper.make_node(op, [read], [written], name=name)


@st.composite
def graphs(draw: st.DrawFn) -> onnx.ModelProto:
    """A random graph on 4x6 matrices in which some nodes are not taken; now and then the batch is open."""
    batch = draw(st.sampled_from([4, "N"]))
    values = ["x", "z"]
    nodes, weights = [], [numpy_helper.from_array(np.linspace(-1, 1, 36, dtype=np.float32).reshape(6, 6), "w")]
    for index in range(draw(st.integers(1, 14))):
        name, read = f"v{index}", st.sampled_from(values[-6:])
        kind = draw(st.sampled_from(("unary", "unary", "binary", "binary", "matmul", "cpu", "cpu", "reshape")))
        if kind == "binary":
            nodes.append(
                helper.make_node(draw(st.sampled_from(("Add", "Mul", "Max"))), [draw(read), draw(read)], [name])
            )
        elif kind == "matmul":
            nodes.append(helper.make_node("MatMul", [draw(read), "w"], [name]))
        elif kind == "reshape":
            nodes.append(helper.make_node("Transpose", [draw(read)], [f"{name}t"], perm=[1, 0], name=f"n{index}t"))
            nodes.append(unary(draw(st.sampled_from((*SUPPORTED, untaken.OP))), f"{name}t", f"{name}u", f"n{index}u"))
            nodes.append(helper.make_node("Transpose", [f"{name}u"], [name], perm=[1, 0]))
        else:
            op = draw(st.sampled_from(SUPPORTED)) if kind == "unary" else untaken.OP
            nodes.append(unary(op, draw(read), name, f"n{index}"))
        nodes[-1].name = f"n{index}"
        values.append(name)
    used = {name for node in nodes for name in node.input}
    outputs = [name for name in values[2:] if name not in used] + [
        n for n in values[2:] if n in used and draw(st.integers(0, 9)) == 0
    ]
    dims = [batch, 6]
    graph = helper.make_graph(
        nodes,
        "random",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name in ("x", "z")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name in outputs],
        weights,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), untaken.OPSET], ir_version=10)
    return onnx.shape_inference.infer_shapes(made)


@pytest.mark.slow
@draws(20)
@given(model=graphs(), mode=st.sampled_from(["maximal", "profitable"]))
def test_random_graph_equals_onnxruntime_when_assembled(model: onnx.ModelProto, mode: str) -> None:
    placement = place(model, mode=mode)
    assert {reject.op for reject in placement.rejects} <= {untaken.OP}
    feeds = {"x": normal(4, 6), "z": normal(4, 6)}
    assert_equals_onnxruntime(model, placement, {v.name: feeds[v.name] for v in model.graph.input})
