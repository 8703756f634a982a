"""Models with dynamic dimensions: one program for all of them, equal to ONNX Runtime at sizes that were no samples."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import bucket_models
import hipdnn_mlir
from drawing import draws
from hipdnn_mlir_runtime.errors import ModelError, UnsupportedError

RELU = "g (float[batch,3] x) => (float[batch,3] y) { y = Relu(x) }"


def model(text: str, opset: int = 21, **weights: np.ndarray) -> onnx.ModelProto:
    made = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>\n{text}')
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


def check(proto: onnx.ModelProto, session: Any, feeds: Mapping[str, np.ndarray]) -> None:
    bucket_models.check(bucket_models.reference(proto), session, feeds)


def floats(*dims: int) -> np.ndarray:
    return np.random.default_rng(sum(dims)).standard_normal(dims).astype(np.float32)


W8 = floats(8, 8)
K3 = floats(4, 3, 3, 3)
MODELS: dict[str, tuple[onnx.ModelProto, dict[str, tuple[int | str, ...]]]] = {
    "elementwise": (model(RELU), {"x": ("b", 3)}),
    "matrix product": (
        model("g (float[b,s,8] x) => (float[b,s,8] y) { t = MatMul(x, w) y = Softmax(t) }", w=W8),
        {"x": ("b", "s", 8)},
    ),
    "heads split and merged": (
        model(
            """g (float[b,s,8] x) => (float[b,s,8] y) <int64[4] split = {0,0,2,4}, int64[3] merged = {0,0,8}> {
            r = Reshape(x, split) t = Transpose<perm=[0,2,1,3]>(r) k = Transpose<perm=[0,2,3,1]>(r)
            p = MatMul(t, k) q = Softmax(p) v = MatMul(q, t) u = Transpose<perm=[0,2,1,3]>(v) y = Reshape(u, merged) }"""
        ),
        {"x": ("b", "s", 8)},
    ),
    "positions that rows share": (
        model(
            """g (float[b,2,9] x) => (float[b,2,2] y) <int64[1] i = {0}, int64[2] one = {1,1}, int64[2,2] at = {8,0,3,-1}> {
            d = Shape(x) p = Gather<axis=0>(d, i) t = Concat<axis=0>(p, one) e = Expand(at, t) y = GatherElements<axis=2>(x, e) }"""
        ),
        {"x": ("b", 2, 9)},
    ),
    "shape arithmetic": (
        model(
            """g (float[b,s,8] x) => (float[n,8] y) <int64[1] i = {0}, int64[1] j = {1}, int64[1] eight = {8}> {
            d = Shape(x) p = Gather<axis=0>(d, i) q = Gather<axis=0>(d, j) m = Mul(p, q) t = Concat<axis=0>(m, eight)
            r = Reshape(x, t) y = Relu(r) }"""
        ),
        {"x": ("b", "s", 8)},
    ),
    "rows in order, and from the last on": (
        model(
            """g (float[s,3] x) => (float[s,3] y) <int64[1] last = {1}, int64 zero = {0}, int64 one = {1}, int64 step = {1}> {
            d = Shape(x) f = Gather<axis=0>(d, zero) r = Range(zero, f, step) i = Unsqueeze(r, last) a = GatherND(x, i)
            e = Sub(f, one) q = Sub(e, r) k = Unsqueeze(q, last) b = GatherND(x, k) t = Mul(b, b) y = Sub(a, t) }"""
        ),
        {"x": ("s", 3)},
    ),
    "past and present": (
        model(
            """g (float[b,past,8] c, float[b,s,8] x) => (float[b,total,8] y) {
            z = Relu(x) y = Concat<axis=1>(c, z) }"""
        ),
        {"c": ("b", "p", 8), "x": ("b", "s", 8)},
    ),
    "last position": (
        model(
            """g (float[b,s,8] x) => (float[b,1,8] y) <int64[1] a = {-1}, int64[1] e = {9223372036854775807},
            int64[1] one = {1}> { l = Slice(x, a, e, one) y = Relu(l) }"""
        ),
        {"x": ("b", "s", 8)},
    ),
    "convolutions of open images": (
        model(
            """g (float[b,3,h,w] x) => (float[b,4,m,n] y) {
            a = Conv<strides=[2,2], pads=[1,1,1,1]>(x, k) r = Relu(a) y = MaxPool<kernel_shape=[3,3], strides=[2,2]>(r) }""",
            k=K3,
        ),
        {"x": ("b", 3, "h", "w")},
    ),
    "slice without axes": (
        model(
            """g (float[b,s,8] x) => (float[b,n,4] y) <int64[3] a = {0,1,2}, int64[3] e = {9223372036854775807, -1, 6}> {
            l = Slice(x, a, e) y = Relu(l) }"""
        ),
        {"x": ("b", "s", 8)},
    ),
    "images that become small": (
        model(
            """g (float[b,3,h,w] x) => (float[b,4] y) <int64[2] s = {2, 3}> {
            a = Conv<strides=[2,2], pads=[1,1,1,1]>(x, k) c = Conv<strides=[2,2], pads=[1,1,1,1]>(a, m)
            d = Conv<strides=[2,2], pads=[1,1,1,1]>(c, m) e = Conv<strides=[2,2], pads=[1,1,1,1]>(d, m) r = Relu(e)
            f = Conv<strides=[2,2]>(r, n) y = ReduceMean<keepdims=0>(f, s) }""",
            k=K3,
            m=floats(4, 4, 3, 3),
            n=floats(4, 4, 1, 1),
        ),
        {"x": ("b", 3, "h", "w")},
    ),
    "mean over an open axis": (
        model("g (float[b,s,8] x) => (float[b,8] y) <int64[1] a = {1}> { y = ReduceMean<keepdims=0>(x, a) }"),
        {"x": ("b", "s", 8)},
    ),
    "every second position": (
        model(
            """g (float[b,s,8] x) => (float[b,n,8] y) <int64[1] a = {0}, int64[1] e = {9223372036854775807},
            int64[1] one = {1}, int64[1] two = {2}> { l = Slice(x, a, e, one, two) y = Relu(l) }"""
        ),
        {"x": ("b", "s", 8)},
    ),
}
SMALLEST = {"h": 9, "w": 9, "s": 3}


@pytest.mark.parametrize("name", MODELS)
def test_one_program_holds_for_all_sizes(name: str) -> None:
    proto, inputs = MODELS[name]
    program = hipdnn_mlir.compile(proto, shapes=inputs)
    session = program.session()

    @draws(12)
    @hypothesis.given(st.data())
    def run(data: st.DataObject) -> None:
        smallest = {symbol: SMALLEST.get(symbol, 1) for symbol in session.symbols}
        sizes = {symbol: data.draw(st.integers(low, low + 20)) for symbol, low in smallest.items()}
        feeds = {n: floats(*(sizes.get(d, d) for d in dims)) for n, dims in inputs.items()}  # type: ignore[arg-type]
        check(proto, session, feeds)

    run()


def test_an_input_may_be_empty_where_it_is_open() -> None:
    proto, inputs = MODELS["past and present"]
    session = hipdnn_mlir.compile(proto, shapes=inputs).session()
    check(proto, session, {"c": floats(2, 0, 8), "x": floats(2, 3, 8)})
    check(proto, session, {"c": floats(0, 4, 8), "x": floats(0, 3, 8)})


def test_names_of_the_model_are_the_programs_symbols(tmp_path: Path) -> None:
    program = hipdnn_mlir.compile(model(RELU))
    program.save(tmp_path / "m.hipdnn")
    session = hipdnn_mlir.load(tmp_path / "m.hipdnn")
    assert session.symbols == ["batch"]
    assert [str(port) for port in (*session.inputs, *session.outputs)] == ["f32[batch,3]", "f32[batch,3]"]


def test_a_dim_without_a_name_is_named_after_its_place() -> None:
    proto = model("g (float[?,3] x) => (float[?,3] y) { y = Relu(x) }")
    assert hipdnn_mlir.compile(proto).session().symbols == ["x.0"]


def test_written_sizes_are_expressions_of_the_others() -> None:
    proto = model(
        "g (float[p,2] c, float[s,2] x, float[n,2] m) => (float[n,2] y) { z = Concat<axis=0>(c, x) y = Add(z, m) }"
    )
    proto.graph.input[2].type.tensor_type.shape.dim[0].dim_param = "p + s"
    session = hipdnn_mlir.compile(proto).session()
    assert session.symbols == ["p", "s"]
    check(proto, session, {"c": floats(3, 2), "x": floats(4, 2), "m": floats(7, 2)})
    with pytest.raises(ModelError, match=r"'m', dimension 0 \(p \+ s\): expected 7, got 6"):
        session.run(None, {"c": floats(3, 2), "x": floats(4, 2), "m": floats(6, 2)})


@pytest.mark.parametrize(
    ("shapes", "symbols"),
    [
        ({}, ["batch"]),
        ({"batch": 4}, []),
        ({"x": (4, 3)}, []),
        ({"batch": "n"}, ["n"]),
        ({"batch": "?"}, ["batch"]),
        ({"x": ("n", 3)}, ["n"]),
        ({"x": ("?", "?")}, ["batch", "x.1"]),
    ],
)
def test_sizes_are_fixed_renamed_or_opened(shapes: dict[str, Any], symbols: list[str]) -> None:
    assert hipdnn_mlir.compile(model(RELU), shapes=shapes).session().symbols == symbols


def test_a_number_for_a_name_holds_for_all_inputs() -> None:
    proto = model("g (float[n,3] x, float[n,3] z) => (float[n,3] y) { y = Add(x, z) }")
    session = hipdnn_mlir.compile(proto, shapes={"x": (5, 3)}).session()
    assert [port.shape for port in session.inputs] == [(5, 3), (5, 3)]
    with pytest.raises(ModelError, match=r"dimension 0 of input 'z' is 6: expected 5, the size of 'n' elsewhere"):
        hipdnn_mlir.compile(proto, shapes={"x": (5, 3), "z": (6, 3)})


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(
        ModelError,
        match=r"no input or dynamic dimension named 'seq': expected an input \(x\) or a dynamic dimension \(batch\)",
    ):
        hipdnn_mlir.compile(model(RELU), shapes={"seq": 4})


def test_a_dynamic_dimension_that_reaches_a_static_one_is_named() -> None:
    proto = model("g (float[b,3] x) => (float[b,4] y) { y = MatMul(x, w) }", w=floats(3, 4))
    message = (
        r"MatMul 'MatMul_0' cannot take 'x' (\d+)x(\d+), 'w' 3x4: .*; \1 stands for 'b' \(dimension 0 of 'x'\), "
        r"\2 stands for 'k' \(dimension 1 of 'x'\); give sizes that are fixed or equal with --shape"
    )
    for ask in (hipdnn_mlir.compile, hipdnn_mlir.explain):
        with pytest.raises(ModelError, match=message):
            ask(proto, shapes={"x": ("b", "k")})


def test_a_dynamic_dimension_that_reaches_a_reshape_of_static_size_is_named() -> None:
    proto = model("g (float[batch,12] x) => (float[4,6] y) <int64[2] s = {4,6}> { r = Relu(x) y = Reshape(r, s) }")
    with pytest.raises(UnsupportedError, match=r"\((\d+), 12\) cannot become \(4, 6\) .*; \1 stands for 'batch' \(dim"):
        hipdnn_mlir.compile(proto)
    told = hipdnn_mlir.explain(proto)
    assert [reject.op for reject in told.rejects] == ["torch.aten.reshape"]
    assert f"({told.samples['batch']}, 12)" in told.rejects[0].reason


@pytest.mark.parametrize(
    ("op", "text"),
    [
        ("Unique", "g (float[n,4] x) => (float[m] y) { r = Relu(x) y = Unique<axis=0>(r) }"),
        ("Reshape", "g (float[n,4] x, int64[2] s) => (float[a,b] y) { r = Relu(x) y = Reshape(r, s) }"),
    ],
)
def test_an_operator_whose_sizes_are_data_is_named(op: str, text: str) -> None:
    proto = model(text)
    message = rf"{op} at '{op}_1': the shape of its result depends on data \[dynamic-shape\]"
    with pytest.raises(UnsupportedError, match=message) as raised:
        hipdnn_mlir.compile(proto)
    assert "--shape" not in str(raised.value)  # no size of an input would help
    told = hipdnn_mlir.explain(proto)
    assert (told.rejects[0].op, told.rejects[0].reason) == (op, "the shape of its result depends on data")
    assert [graph.nodes for graph in told.graphs] == [["Relu_0"]]


def test_a_size_below_what_top_k_takes_is_an_error_of_the_run() -> None:
    proto = model("g (float[n,s] x) => (float[n,k] v, int64[n,k] i) <int64[1] five = {5}> { v, i = TopK(x, five) }")
    session = hipdnn_mlir.compile(proto).session()
    check(proto, session, {"x": floats(2, 5)})
    with pytest.raises(ModelError, match=r"the program does not hold for n=2, s=3: node 'TopK_0' needs 5 <= s"):
        session.run(None, {"x": floats(2, 3)})


def test_two_sizes_for_one_name_are_refused() -> None:
    for shapes in ({"x": (2, 3), "batch": 4}, {"batch": 4, "x": (2, 3)}):
        with pytest.raises(
            ModelError, match=r"'batch' is given two sizes: got 2 and 4|is 2: expected 4, the size of 'batch' elsewhere"
        ):
            hipdnn_mlir.compile(model(RELU), shapes=shapes)


def test_constants_that_depend_on_sizes_are_saved(tmp_path: Path) -> None:
    proto = model(
        """g (float[a,b] x) => (float[c] y) <float[1] two = {2.0}> {
        s = Shape(x) p = ReduceProd<keepdims=1>(s) e = Expand(two, p) y = Neg(e) }"""
    )
    program = hipdnn_mlir.compile(proto)
    assert program.model.constants[0].values is not None
    program.save(tmp_path / "m.hipdnn")
    for size in (3, 5):
        check(proto, hipdnn_mlir.load(tmp_path / "m.hipdnn"), {"x": floats(2, size)})


@pytest.mark.parametrize("number", [-np.inf, 0.1])
def test_a_constant_that_depends_on_sizes_may_hold_any_number(number: float) -> None:
    proto = model(
        "g (float[a,b] x) => (float[c] y) { s = Shape(x) p = ReduceProd<keepdims=1>(s) e = Expand(w, p) y = Neg(e) }",
        w=np.array([number], np.float32),
    )
    program = hipdnn_mlir.compile(proto)
    assert program.model.constants[0].values is not None
    check(proto, program.session(), {"x": floats(2, 3)})


def test_kernels_take_sizes_of_0() -> None:
    proto = model(
        "g (float[n,m] x) => (float[p] y) <int64[1] all = {-1}, int64[1] three = {3}> { s = Reshape(x, all) y = Tile(s, three) }"
    )
    session = hipdnn_mlir.compile(proto).session()
    for dims in ((2, 0), (0, 3), (2, 3)):
        check(proto, session, {"x": floats(*dims)})


@pytest.mark.parametrize("size", ["3", -1, 2.5, 1 << 48, 1 << 70])
def test_prewarmed_sizes_are_numbers(size: Any) -> None:
    session = hipdnn_mlir.compile(model(RELU)).session()
    with pytest.raises(ModelError, match=r"bad size for 'batch': expected a number from 0 to 2\^48 - 1, got"):
        session.prewarm([{"batch": size}])


def test_dims_that_are_no_sizes_are_refused() -> None:
    with pytest.raises(ModelError, match=r"dimension 0 of input 'x': expected a number, a name or '\?', got 2.5"):
        hipdnn_mlir.compile(model(RELU), shapes={"x": (2.5, 3)})  # type: ignore[dict-item]
    for shapes in ({"n": "5"}, {"x": ("5", 3)}):
        with pytest.raises(ModelError, match=r"expected a number, a name or '\?', got '5'; write 5 without quotes"):
            hipdnn_mlir.compile(model(RELU), shapes=shapes)


def test_an_operator_that_is_written_out_token_by_token_is_refused() -> None:
    text = """g (float[1,n,8] q, float[1,n,8] k, float[1,n,8] v) => (float[1,n,8] y, float[1,2,4,4] s) {
        y, s = LinearAttention<q_num_heads=2, kv_num_heads=2, update_rule="linear">(q, k, v) }"""
    message = r"LinearAttention_0: LinearAttention is written out as \d+ operators at one sample size, as \d+ at another.*--shape"
    with pytest.raises(ModelError, match=message):
        hipdnn_mlir.compile(model(text, opset=27))
    session = hipdnn_mlir.compile(model(text, opset=27), shapes={"n": 3}).session()
    assert [port.shape for port in session.outputs] == [(1, 3, 8), (1, 2, 4, 4)]


BRANCH = """g (float[n,3] x) => (float[n,3] y) <int64 i = {0}, int64 limit = {70}> {
    s = Shape(x) d = Gather<axis=0>(s, i) c = Less(d, limit)
    y = If(c) <then_branch = t () => (float[n,3] p) { p = Relu(x) }, else_branch = e () => (float[n,3] q) { q = Neg(x) }> }"""
SHORTER = """g (float[n,3] x) => (float[m,3] y) <int64[1] i = {0}, int64[1] zero = {0}, int64[1] limit = {70}> {
    s = Shape(x) d = Gather<axis=0>(s, i) e = Min(d, limit) l = Slice(x, zero, e, zero) y = Relu(l) }"""
CLAMPED = """g (float[n,3] x) => (float[m,3] y) <int64[1] zero = {0}, int64[1] limit = {70}> {
    l = Slice(x, zero, limit, zero) y = Relu(l) }"""


@pytest.mark.parametrize(
    ("text", "condition"),
    [(BRANCH, r"node '.*' needs n < 70"), (SHORTER, r"node '.*' needs n <= 70"), (CLAMPED, r"node '.*' needs n <= 70")],
)
def test_what_a_model_decides_by_its_sizes_is_a_condition(text: str, condition: str) -> None:
    """The sample sizes are below 70: whatever is true of them alone must not be taken for granted."""
    proto = model(text)
    session = hipdnn_mlir.compile(proto).session()
    check(proto, session, {"x": floats(69, 3)})
    with pytest.raises(
        ModelError, match=f"the program does not hold for n=71: {condition}; compile the model for these sizes"
    ):
        session.run(None, {"x": floats(71, 3)})
    check(proto, hipdnn_mlir.compile(proto, shapes={"n": 71}).session(), {"x": floats(71, 3)})


def test_quotients_of_sizes_are_exact() -> None:
    text = """g (float[n,3] x) => (float[m,3] y) <int64[1] i = {0}, int64[1] zero = {0}, int64[1] seven = {7}> {
        s = Shape(x) d = Gather<axis=0>(s, i) e = Div(d, seven) l = Slice(x, zero, e, zero) y = Relu(l) }"""
    proto = model(text)
    session = hipdnn_mlir.compile(proto).session()
    for n in range(7, 40):
        check(proto, session, {"x": floats(n, 3)})


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        (
            {"c": floats(3, 1, 8), "x": floats(2, 1, 8)},
            r"'x', dimension 0 \('b'\): expected 3 as in 'c', dimension 0, got 2",
        ),
        ({"c": floats(2, 1, 7), "x": floats(2, 1, 8)}, r"'c': wrong array: expected f32\[b,p,8\], got f32\[2,1,7\]"),
        ({"c": floats(2, 8), "x": floats(2, 1, 8)}, r"'c': wrong array: expected f32\[b,p,8\], got f32\[2,8\]"),
    ],
)
def test_sizes_of_a_run_that_contradict_are_named(feeds: dict[str, np.ndarray], message: str) -> None:
    proto, inputs = MODELS["past and present"]
    session = hipdnn_mlir.compile(proto, shapes=inputs).session()
    with pytest.raises(ModelError, match=message):
        session.run(None, feeds)
    with pytest.raises(ModelError, match=r"'[cx]'"):
        session.output_shapes({name: array.shape for name, array in feeds.items()})
    check(proto, session, {"c": floats(2, 1, 8), "x": floats(2, 1, 8)})


def test_a_size_beyond_a_table_is_an_error_of_the_run() -> None:
    text = """g (float[s,4] x) => (float[s,4] y) <int64[1] zero = {0}, int64[1] one = {0}> {
        d = Shape<start=0, end=1>(x) p = Slice(table, zero, d, one) y = Add(x, p) }"""
    proto = model(text, table=floats(300, 4))
    session = hipdnn_mlir.compile(proto).session()
    check(proto, session, {"x": floats(299, 4)})
    with pytest.raises(ModelError, match=r"the program does not hold for s=301"):
        session.run(None, {"x": floats(301, 4)})


def test_sizes_that_leave_64_bits_are_refused() -> None:
    proto, inputs = MODELS["past and present"]
    session = hipdnn_mlir.compile(proto, shapes=inputs).session()
    with pytest.raises(ModelError, match=r"leaves the range of 64 bits where b is 1099511627776"):
        session.prewarm([{"b": 1 << 40, "p": 1 << 40, "s": 1}])


def test_prewarmed_sizes_are_loaded() -> None:
    proto, inputs = MODELS["matrix product"]
    session = hipdnn_mlir.compile(proto, shapes=inputs).session()
    with pytest.raises(ModelError, match=r"the sizes b, s are open; run the program, or prewarm it"):
        session.stats  # noqa: B018 - the property raises
    session.prewarm({"b": b, "s": s} for b, s in itertools.product((1, 2), (3, 4)))
    assert session.stats.specializations == 4
    check(proto, session, {"x": floats(2, 3, 8)})
    assert session.stats.specializations == 4
    with pytest.raises(ModelError, match=r"wrong sizes: expected b, s, got b"):
        session.prewarm([{"b": 1}])


def test_instances_are_bounded() -> None:
    proto, inputs = MODELS["matrix product"]
    session = hipdnn_mlir.load(hipdnn_mlir.compile(proto, shapes=inputs), max_specializations=3)
    for s in (1, 2, 3, 4, 5, 1, 5):
        check(proto, session, {"x": floats(2, s, 8)})
        assert session.stats.specializations <= 3


def test_threads_with_different_sizes_run_at_once() -> None:
    proto, inputs = MODELS["matrix product"]
    session = hipdnn_mlir.load(hipdnn_mlir.compile(proto, shapes=inputs), max_specializations=2)
    feeds = [{"x": floats(1 + i % 3, 1 + i % 5, 8)} for i in range(60)]
    with ThreadPoolExecutor(4) as pool:
        for case, got in zip(feeds, pool.map(lambda case: session.run(None, case)[0], feeds), strict=True):
            np.testing.assert_array_equal(got, session.run(None, case)[0])


def test_output_arrays_are_checked_against_the_sizes_of_the_run() -> None:
    session = hipdnn_mlir.compile(model(RELU)).session()
    out = np.empty((2, 3), np.float32)
    session.run(None, {"x": floats(2, 3)}, out={"y": out})
    np.testing.assert_array_equal(out, np.maximum(floats(2, 3), 0))
    with pytest.raises(ModelError, match=r"'y': wrong array: expected f32\[4,3\], got f32\[2,3\]"):
        session.run(None, {"x": floats(4, 3)}, out={"y": out})


def test_one_row_is_scaled_by_its_extremes_as_several_are() -> None:
    """The sample sizes have several rows, of which the engine takes longer ones than where there is one alone."""
    scaled = model("""scaled (float[n,40000] x) => (float[n,40000] y) {
        one = Constant<value_ints=[1]>() low = ReduceMin(x, one) high = ReduceMax(x, one)
        range = Sub(high, low) moved = Sub(x, low) y = Div(moved, range) }""")
    session = hipdnn_mlir.compile(scaled).session()
    for rows in (1, 2):
        check(scaled, session, {"x": floats(rows, 40000)})
