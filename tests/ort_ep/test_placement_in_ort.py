"""Models of which the provider takes a part: which nodes run where in ONNX Runtime, and that the results are those of the CPU provider."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper, parser
from onnxruntime.capi.onnxruntime_pybind11_state import Fail

import untaken
from drawing import draws
from ort_ep import sessions

RNG = np.random.default_rng(7)
MAXIMAL = {"placement": "maximal"}
Arrays = Mapping[str, np.ndarray]


def build(text: str, opset: int = 21, **weights: np.ndarray) -> onnx.ModelProto:
    """Return the model of a graph in ONNX's text form; a node is called ``n_`` and its first result."""
    opsets = f'"" : {opset}, "com.microsoft" : 1, {untaken.OPSET_TEXT}'
    model = parser.parse_model(f"<ir_version: 10, opset_import: [{opsets}]>\n{untaken.in_text(text)}")
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    for node in model.graph.node:
        node.name = f"n_{node.output[0]}"
    return model


def normal(*dims: int) -> np.ndarray:
    return RNG.standard_normal(dims, np.float32)


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def assert_equals_cpu(session: ort.InferenceSession, model: onnx.ModelProto, feeds: Arrays) -> None:
    """The session gives what the CPU provider gives."""
    got, want = session.run(None, dict(feeds)), sessions.reference(model, feeds)
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        if np.asarray(other).dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_equal(one, other)


PARTLY_TAKEN: dict[str, tuple[str, list[list[str]]]] = {
    "a node without an engine": (
        "g (float[4,8] x) => (float[4,8] y) { a = Relu(x) b = Untaken(a) c = Tanh(b) y = Exp(c) }",
        [["n_a"], ["n_c", "n_y"]],
    ),
    "a side path through the CPU": (
        "g (float[4,8] x) => (float[4,8] y) { a = Relu(x) b = Untaken(a) c = Tanh(a) y = Add(b, c) }",
        [["n_a", "n_c"], ["n_y"]],
    ),
    "an operand that is late": (
        """g (float[4,8] x) => (float[4,8] y) {
            a = Relu(x) b = Tanh(a) s = Untaken(x) t = Untaken(s) y = Add(b, t) }""",
        [["n_a", "n_b", "n_y"]],
    ),
    "values of the CPU between two parts": (
        """g (float[4,8] x) => (float[4,8] y, float[4,8] w) {
            a = Relu(x) b = Tanh(x) c = Untaken(a) d = Untaken(b) e = Mul(b, c) f = Mul(a, d) y = Exp(e) w = Exp(f) }""",
        [["n_a", "n_b"], ["n_e", "n_y"], ["n_f", "n_w"]],
    ),
    "a result of unknown size": (
        """g (float[4,8] x) => (int64[2,K] i, float[4,8] y, int64[2,K] j) {
            a = Relu(x) i = NonZero(a) j = Add(i, i) y = Exp(a) }""",
        [["n_a", "n_y"]],
    ),
    "branches that read values of the main graph": (
        """g (float[4,8] x) => (float[4,8] y, float[4,8] z) {
            a = Relu(x) b = Tanh(x) s = ReduceSum<keepdims=0>(x) h = Sub(s, s) c = Greater(s, h)
            t = If<then_branch = g1 () => (float[4,8] u) { q = Exp(b) u = Untaken(q) },
                   else_branch = g2 () => (float[4,8] v) { v = Neg(a) }>(c)
            y = Mul(t, b) z = Exp(b) }""",
        [["n_a", "n_b", "n_c", "n_h", "n_s", "n_z"], ["n_y"]],
    ),
    "a loop that reads values of the main graph": (
        """g (float[4,8] x) => (float[4,8] y) {
            a = Relu(x) b = Tanh(x) trip = Constant<value = int64 {3}>() on = Constant<value = bool {1}>()
            t = Loop<body = g1 (int64 i, bool p, float[4,8] s) => (bool q, float[4,8] r) { q = Identity(p) m = Mul(b, s) r = Untaken(m) }>(
                trip, on, a)
            y = Add(t, b) }""",
        [["n_a", "n_b"]],  # not even the rank of what a loop carries is known before it runs
    ),
    "an operator of another domain": (
        "g (float[4,8] x) => (float[4,8] y) { a = Relu(x) b = com.microsoft.Trilu(a) y = Tanh(b) }",
        [["n_a"], ["n_y"]],
    ),
    "strings": (
        """g (float[4,8] x) => (string[4,8] s, float[4,8] y) {
            a = Relu(x) r = Round(a) i = Cast<to=7>(r) t = Cast<to=8>(i) s = StringConcat(t, t) y = Exp(a) }""",
        [["n_a", "n_i", "n_r", "n_y"]],
    ),
    "sequences": (
        """g (float[4,8] x) => (float[4,8] y) {
            zero = Constant<value = int64 {0}>() a = Relu(x) b = Tanh(x) s = SequenceConstruct(a, b)
            t = SequenceAt(s, zero) y = Exp(t) }""",
        [["n_a", "n_b"], ["n_y"]],
    ),
    "results that leave where they are also read": (
        """g (float[4,8] x) => (float[4,8] a, float[4,8] y, float[4,8] b, float[4,8] c) {
            a = Relu(x) b = Tanh(a) c = Untaken(a) y = Exp(b) }""",
        [["n_a", "n_b", "n_y"]],
    ),
    "several results, one unused": (
        """g (float[4,8] x) => (float[4,4] y) {
            p, q = Split<axis=1, num_outputs=2>(x) s = Untaken(q) y = Relu(s) }""",
        [["n_p"], ["n_y"]],
    ),
}


@pytest.mark.parametrize("kind", sessions.KINDS)
@pytest.mark.parametrize("name", PARTLY_TAKEN)
def test_parts_are_where_engines_are_and_results_equal(name: str, kind: str, cache_dir: Path) -> None:
    text, expected = PARTLY_TAKEN[name]
    model = build(text)
    session = sessions.make_session(model, cache_dir, kind=kind, options=MAXIMAL)
    assert sorted(map(sorted, sessions.partitions(session))) == sorted(expected)
    assert sessions.placed_nodes(session)[1], "some node is left to the CPU"
    for _ in range(2):
        assert_equals_cpu(session, model, {"x": normal(4, 8)})


def declare_weight(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with its initializer w as an input too, so that a run may give another value."""
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [8, 8]))
    return model


@pytest.mark.parametrize("tail", ["y = Tanh(b)", "y = Untaken(b)"], ids=["whole", "part"])
def test_weight_that_is_an_input_too_can_be_given_by_a_run(tail: str, cache_dir: Path) -> None:
    text = "g (float[4,8] x) => (float[4,8] y) { a = Relu(x) b = MatMul(a, w) %s }"
    model = declare_weight(build(text % tail, w=normal(8, 8)))
    session = sessions.make_session(model, cache_dir, options=MAXIMAL)
    assert {"n_a", "n_b"} <= set(sessions.placed_nodes(session)[0])
    assert_equals_cpu(session, model, {"x": normal(4, 8)})
    assert_equals_cpu(session, model, {"x": normal(4, 8), "w": normal(8, 8)})


INTERFACES = {
    "an input is an output": "g (float[4,8] x) => (float[4,8] x, float[4,8] y) { y = Relu(x) }",
    "an initializer is an output": "g (float[4,8] x) => (float[4,8] y, float[8,8] w) { a = Relu(x) y = MatMul(a, w) }",
    "an output is folded away": "g (float[4,8] x) => (float[4,8] y, float[8,8] z) { y = MatMul(x, w) z = Exp(w) }",
    "two outputs are one value": "g (float[4,8] x) => (float[4,8] y, float[4,8] z) { y = Relu(x) z = Identity(y) }",
    "nothing is computed": "g (float[4,8] x) => (float[8,4] y) { s = Constant<value_ints=[8, 4]>() y = Reshape(x, s) }",
    "an input is not read": "g (float[4,8] x, float[3] unread) => (float[4,8] y) { y = Relu(x) }",
    "outputs are of other types": """g (float[4,8] x) => (bool[4,8] y, int64[4,8] z, float16[4,8] h) {
        y = Greater(x, x) r = Round(x) z = Cast<to=7>(r) h = Cast<to=10>(x) }""",
}


@pytest.mark.parametrize("kind", sessions.KINDS)
@pytest.mark.parametrize("name", INTERFACES)
def test_whole_model_is_placed_when(name: str, kind: str, cache_dir: Path) -> None:
    model = build(
        INTERFACES[name], **({"w": normal(8, 8)} if " w" in INTERFACES[name] or "w)" in INTERFACES[name] else {})
    )
    session = sessions.make_session(model, cache_dir, kind=kind, wholly=True)
    assert len(sessions.placed_nodes(session)[0]) == sessions.count_nodes(model) > 0
    feeds = {"x": normal(4, 8), "unread": normal(3)}
    assert_equals_cpu(session, model, {port.name: feeds[port.name] for port in session.get_inputs()})


@pytest.mark.parametrize("rows", ["0", "N"])
def test_batch_may_be_empty(rows: str, cache_dir: Path) -> None:
    text = f"g (float[{rows},8] x) => (float[{rows},8] y, float[8] z) {{ a = MatMul(x, w) y = Relu(a) z = ReduceSum<keepdims=0>(y, zero) }}"
    model = build(text, w=normal(8, 8), zero=np.array([0]))
    session = sessions.make_session(model, cache_dir, wholly=True)
    assert len(sessions.placed_nodes(session)[0]) == 3
    for batch in (0, 3, 0) if rows == "N" else (0,):
        assert_equals_cpu(session, model, {"x": normal(batch, 8)})


BETWEEN_CPU_NODES = "g (float[%(dims)s] x) => (float[%(dims)s] y) { a = Untaken(x) b = %(op)s y = Untaken(b) }"
HOPS = [
    pytest.param("4,8", "Add(a, a)", {}, False, id="a lone Add"),
    pytest.param("256,512", "MatMul(a, w)", {"w": (512, 512)}, True, id="a matrix product"),
    pytest.param("1,64,56,56", "Conv<pads=[1,1,1,1]>(a, w)", {"w": (64, 64, 3, 3)}, True, id="a convolution"),
]


@pytest.mark.parametrize(("dims", "op", "weights", "gains"), HOPS)
def test_part_between_cpu_nodes_is_placed_when_it_gains_more_than_its_hops_cost(
    dims: str, op: str, weights: dict[str, tuple[int, ...]], gains: bool, cache_dir: Path
) -> None:
    model = build(BETWEEN_CPU_NODES % {"dims": dims, "op": op}, **{name: normal(*w) / 8 for name, w in weights.items()})
    feeds = {"x": normal(*map(int, dims.split(",")))}
    for options, expected in ((MAXIMAL, ["n_b"]), ({}, ["n_b"] if gains else [])):
        session = sessions.make_session(model, cache_dir, options=options)
        assert sessions.placed_nodes(session)[0] == expected
        assert_equals_cpu(session, model, feeds)


def test_small_model_is_placed_when_it_has_no_hops(cache_dir: Path) -> None:
    model = build("g (float[4,8] x) => (float[4,8] y) { y = Add(x, x) }")
    session = sessions.make_session(model, cache_dir, wholly=True)
    assert sessions.placed_nodes(session) == (["n_y"], [])
    assert_equals_cpu(session, model, {"x": normal(4, 8)})


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        pytest.param(MAXIMAL, ["2 of 3 nodes", f"{untaken.OP}: ", "Inverse: "], id="no engine"),
        pytest.param(
            {},
            ["3 of 3 nodes", f"{untaken.OP}: ", "Inverse: ", "Add: ", "hops to and from the CPU (2) cost"],
            id="hops",
        ),
    ],
)
def test_session_fails_with_every_reason_when_strict(
    options: dict[str, str], reasons: list[str], cache_dir: Path
) -> None:
    model = build("g (float[4,4] x) => (float[4,4] y) { a = Untaken(x) b = Add(a, a) y = com.microsoft.Inverse(b) }")
    with pytest.raises(Fail, match="strict") as raised:
        sessions.make_session(model, cache_dir, options={**options, "strict": "1"})
    for reason in reasons:
        assert reason in str(raised.value)
    assert_equals_cpu(sessions.make_session(model, cache_dir, options=options), model, {"x": normal(4, 4)})


def test_session_is_created_when_strict_and_every_node_is_taken(cache_dir: Path) -> None:
    model = build("g (float[4,8] x) => (float[4,8] y) { a = Relu(x) y = Tanh(a) }")
    session = sessions.make_session(model, cache_dir, options={"strict": "1"})
    assert sessions.placed_nodes(session) == (["n_a", "n_y"], [])


TAKEN = ("Relu", "Tanh", "Neg", "Sigmoid")


@st.composite
def graphs(draw: st.DrawFn) -> onnx.ModelProto:
    """Draw a graph on matrices of n rows and 6 columns in which some nodes have no engine; now and then n is open."""
    rows = draw(st.sampled_from([4, 4, "N"]))
    values, nodes = ["x", "z"], []
    for index in range(draw(st.integers(2, 14))):
        read = st.sampled_from(values[-6:])
        kind = draw(st.sampled_from(("taken", "taken", "left", "left", "two", "product", "joined")))
        operands = {"two": [draw(read), draw(read)], "product": [draw(read), "w"], "joined": [draw(read), draw(read)]}
        op = {"taken": TAKEN, "two": ("Add", "Mul", "Max"), "product": ("MatMul",), "joined": ("Concat",)}.get(kind)
        name = f"v{index}"
        result = f"{name}_joined" if kind == "joined" else name
        attributes = {"axis": 1} if kind == "joined" else {}
        inputs = operands.get(kind, [draw(read)])
        if op is None:
            nodes.append(untaken.node(*inputs, result, f"n{index}"))
        else:
            nodes.append(helper.make_node(draw(st.sampled_from(op)), inputs, [result], name=f"n{index}", **attributes))
        if kind == "joined":
            nodes.append(helper.make_node("MatMul", [result, "wide"], [name], name=f"n{index}_wide"))
        values.append(name)
    used = {name for node in nodes for name in node.input}
    outputs = [name for name in values[2:] if name not in used or draw(st.integers(0, 9)) == 0]
    ports = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, 6]) for name in (*values[:2], *outputs)
    }
    weights = {"w": np.linspace(-1, 1, 36).reshape(6, 6), "wide": np.linspace(-1, 1, 72).reshape(12, 6)}
    initializers = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()]
    graph = helper.make_graph(
        nodes, "random", [ports["x"], ports["z"]], [ports[name] for name in outputs], initializers
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), untaken.OPSET], ir_version=10)


@draws(25)
@given(model=graphs(), placement=st.sampled_from(["maximal", "profitable"]), kind=st.sampled_from(sessions.KINDS))
def test_random_graph_equals_the_cpu_provider(
    cache_dir: Path, model: onnx.ModelProto, placement: str, kind: str
) -> None:
    session = sessions.make_session(model, cache_dir, kind=kind, options={"placement": placement})
    if placement == "maximal":
        parts = session.get_provider_graph_assignment_info()
        types = [(part.ep_name, node.op_type) for part in parts for node in part.get_nodes()]
        assert {op for ep, op in types if ep != sessions.EP_NAME} <= {untaken.OP}
        assert not {op for ep, op in types if ep == sessions.EP_NAME} & {untaken.OP}
    assert_equals_cpu(session, model, {"x": normal(4, 6), "z": normal(4, 6)})


SIZED_BY_DATA: dict[str, tuple[str, Arrays]] = {
    "TopK": (
        "g (float[6] x, int64[1] k) => (float[3] y, int64[3] i) { a = Relu(x) y, i = TopK(a, k) }",
        {"x": normal(6), "k": np.array([2])},
    ),
    "ReduceL2": (
        "g (float[3,2,2] x, int64[1] k) => (float[3,2,1] y) { a = Relu(x) y = ReduceL2(a, k) }",
        {"x": normal(3, 2, 2), "k": np.array([0])},
    ),
    "Reshape": (
        "g (float[6] x, int64[2] k) => (float[2,3] y) { a = Relu(x) y = Reshape(a, k) }",
        {"x": normal(6), "k": np.array([3, 2])},
    ),
    "Expand": (
        "g (float[1] x, int64[1] k) => (float[3] y) { a = Relu(x) y = Expand(a, k) }",
        {"x": normal(1), "k": np.array([2])},
    ),
    "Tile": (
        "g (float[2] x, int64[1] k) => (float[6] y) { a = Relu(x) n = Neg(k) p = Neg(n) y = Tile(a, p) }",
        {"x": normal(2), "k": np.array([2])},
    ),
    "Split": (
        "g (float[6] x, int64[2] k) => (float[3] y, float[3] z) { a = Relu(x) y, z = Split(a, k) }",
        {"x": normal(6), "k": np.array([2, 4])},
    ),
    "Squeeze": (
        "g (float[1,2,1] x, int64[1] k) => (float[2,1] y) { a = Relu(x) y = Squeeze(a, k) }",
        {"x": normal(1, 2, 1), "k": np.array([2])},
    ),
}


@pytest.mark.parametrize("operator", SIZED_BY_DATA)
def test_sizes_are_those_of_the_run_whatever_the_model_declares(operator: str, cache_dir: Path) -> None:
    text, feeds = SIZED_BY_DATA[operator]
    model = build(text)
    session = sessions.make_session(model, cache_dir, options=MAXIMAL)
    assert_equals_cpu(session, model, feeds)
    assert [name for name in sessions.placed_nodes(session)[0] if "n_a" in name]


def test_names_of_a_model_do_not_reach_the_terminal_as_commands(cache_dir: Path, capfd) -> None:
    model = build("g (float[4,8] x) => (float[4,8] y) { a = Relu(x) b = Untaken(a) y = Tanh(b) }")
    model.graph.node[1].name = "\x1b]0;owned\x07\x9b2J"
    settings = sessions.session_options(cache_dir, options=MAXIMAL)
    settings.log_severity_level = 0
    ort.InferenceSession(model.SerializeToString(), sess_options=settings)
    ours = [line for line in capfd.readouterr().err.split("\n") if "libhipdnn_ep" in line and "owned" in line]
    assert any(r"\x1b]0;owned\x07\x9b2J" in line for line in ours)
    assert not any(text in line for line in ours for text in ("\x1b]", "\x07", "\x9b"))


@pytest.mark.parametrize(("attribute", "left"), [("seed = 2.0", []), ("scale = 1.0", ["n_r"])])
def test_random_numbers_are_placed_when_a_seed_makes_them_the_same_at_each_run(
    attribute: str, left: list[str], cache_dir: Path
) -> None:
    model = build(
        f"g (float[3,4] x) => (float[3,4] y) {{ a = Relu(x) r = RandomNormalLike<{attribute}>(a) y = Add(a, r) }}"
    )
    session = sessions.make_session(model, cache_dir, options=MAXIMAL)
    assert sessions.placed_nodes(session)[1] == left
    feeds = {"x": normal(3, 4)}
    is_same = np.array_equal(session.run(None, feeds)[0], session.run(None, feeds)[0])
    assert is_same == (not left)
