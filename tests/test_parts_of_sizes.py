"""Parts of dynamic dimensions, at sizes on both sides of the numbers that a model names, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper, parser

import hipdnn_mlir
from hipdnn_mlir_runtime.errors import DynamicDimensionError, ModelError

END = 2**63 - 1


def model(body: str, dims: str = "n,3", result: str = "m,3", opset: int = 21, **constants: object) -> onnx.ModelProto:
    text = f"""<ir_version: 10, opset_import: ["" : {opset}]>
        g (float[{dims}] x) => (float[{result}] y) <int64[1] first = {{0}}> {{ size = Shape<start=0, end=1>(x) {body} }}"""
    made = parser.parse_model(text)
    made.graph.initializer.extend(numpy_helper.from_array(np.array(value), name) for name, value in constants.items())
    return made


def slices(start: int, end: int, step: int = 1) -> onnx.ModelProto:
    return model("y = Slice(x, a, b, first, c)", a=[start], b=[end], c=[step])


def serves(proto: onnx.ModelProto, served: Sequence[int], refused: int | None = None) -> None:
    """Whether one program gives what ONNX Runtime gives at some sizes, and an error at another."""
    session = hipdnn_mlir.compile(proto).session()
    settings = ort.SessionOptions()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    reference = ort.InferenceSession(proto.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    for n in served:
        dims = [n if isinstance(size, str) else size for size in session.inputs[0].shape]
        feeds = {"x": np.random.default_rng(n).standard_normal(dims).astype(np.float32)}
        (got,), (want,) = session.run(None, feeds), reference.run(None, feeds)
        np.testing.assert_array_equal(got, want)
    if refused is not None:
        with pytest.raises(ModelError, match=f"the program does not hold for n={refused}"):
            session.run(None, {"x": np.zeros((refused, *session.inputs[0].shape[1:]), np.float32)})


@pytest.mark.parametrize(
    ("bounds", "served", "refused"),
    [
        ((-100, END), (100, 150), 99),
        ((100, END), (100, 101, 150), 99),
        ((0, -100), (100, 150), 99),
        ((30, -30), (60, 61, 150), 59),
        ((-300, END), (1, 150, 300), 301),
        ((-200, END, 70), (200, 400), 199),
        ((0, END, 70), (1, 70, 71, 150), None),
        ((-1, -50, -1), (50, 150), 49),
        ((50, 0, -1), (51, 150), 50),
        ((60, -END, -7), (61, 150), 60),
        ((0, 0), (0, 1, 150), None),
        ((5, 3), (1, 4, 150), None),
    ],
    ids=str,
)
def test_a_slice_holds_where_its_bounds_are_inside(
    bounds: tuple[int, ...], served: Sequence[int], refused: int | None
) -> None:
    serves(slices(*bounds), served, refused)


def test_a_slice_that_is_empty_at_all_samples_is_no_constant() -> None:
    with pytest.raises(DynamicDimensionError, match="Slice_1: Slice takes nothing at any sample size"):
        hipdnn_mlir.compile(slices(-5, 9))
    for n in (3, 12, 20):
        session = hipdnn_mlir.compile(slices(-5, 9), shapes={"n": n}).session()
        x = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], x[-5:9])


ROLLED = "a = Slice(x, back, end, first) b = Slice(x, first, back, first) y = Concat<axis=0>(a, b)"
COUNTED = "n = Squeeze(size) r = Range(low, n, step) y = Gather(x, r)"
FLOATS = "n = Squeeze(size) f = Cast<to=1>(n) r = Range(low, f, step) i = Cast<to=7>(r) y = Gather(x, i)"
PADDED = "p = Concat<axis=0>(none, d, first) y = Pad(x, p)"
TWICE = "s = Cast<to=1>(size) t = Mul(s, two) f = Floor(t) e = Cast<to=7>(f) d = Sub(e, size) " + PADDED
FILLED = "q = Mod(size, c) e = Sub(c, q) d = Mod(e, c) " + PADDED
FILLED_AND = "a = Add(size, less) q = Div(a, c) m = Mul(q, c) e = Sub(m, size) d = Add(e, more) " + PADDED
MULTIPLES = (1, 31, 32, 33, 64, 65, 150, 400)


@pytest.mark.parametrize(
    ("proto", "served", "refused"),
    [
        pytest.param(model(ROLLED, back=[-100], end=[END]), (100, 150), 99, id="rolled"),
        pytest.param(model(COUNTED, low=100, step=1), (100, 150), 99, id="range from 100"),
        pytest.param(model(COUNTED, low=0, step=7), (1, 7, 8, 150), None, id="every seventh"),
        pytest.param(model(FLOATS, low=np.float32(100), step=np.float32(1)), (100, 150), 99, id="range of floats"),
        pytest.param(model(FLOATS, low=np.float32(0), step=np.float32(7)), (1, 7, 8, 150), None, id="every seventh float"),
        pytest.param(model(TWICE, two=np.float32([2]), none=[0, 0]), (1, 31, 150), None, id="twice in floats"),
        pytest.param(model(FILLED, c=[32], none=[0, 0]), MULTIPLES, None, id="filled to 32"),
        pytest.param(model(FILLED_AND, c=[32], less=[31], more=[5], none=[3, 0]), MULTIPLES, None, id="filled to 32 and 8 more"),
        pytest.param(model(FILLED, c=[64], none=[0, 0]), MULTIPLES, None, id="filled to 64"),
        pytest.param(
            model("q = Mod(size, c) e = Sub(size, q) y = Slice(x, first, e, first)", c=[32]), MULTIPLES, None, id="multiple"
        ),
        pytest.param(model("q = Mod(size, c) y = Slice(x, q, size, first)", c=[32]), MULTIPLES, None, id="but the rest"),
        pytest.param(model("d = Sub(c, size) " + PADDED, c=[100], none=[0, 0]), (1, 99, 100), 101, id="up to 100"),
        pytest.param(model("s = Sub(size, c) y = Slice(x, s, size, first)", c=[100]), (100, 150), 99, id="from n-100"),
        pytest.param(model("s = Sub(size, c) y = Slice(x, s, size, first)", c=[30]), (30, 150), 29, id="from n-30"),
        pytest.param(model("s = Neg(size) y = Slice(x, s, size, first)"), (1, 150), 0, id="from -n"),
        pytest.param(model("y, z = Split<axis=0, num_outputs=2>(x)"), (2, 5, 150), None, id="halves"),
        pytest.param(
            model("h = Div(size, two) a = Slice(x, h, size, first) n = Shape<start=0, end=1>(a) q = Mod(n, c) e = Sub(c, q) "
                  "d = Mod(e, c) p = Concat<axis=0>(none, d, first) y = Pad(a, p)", two=[2], c=[4], none=[0, 0]),
            (1, 2, 7, 9, 150), None, id="a half filled to 4"
        ),
        pytest.param(
            model("b = Cast<to=3>(size) f = Cast<to=1>(b) y = Mul(x, f)"), (1, 127), 128, id="a number of 8 bits"
        ),
        pytest.param(
            model("s = Shape(x) b = Cast<to=2>(s) f = Cast<to=1>(b) y = Mul(x, f)", dims="n,2", result="n,2"),
            (1, 255), 256, id="two numbers of 8 bits"
        ),
        pytest.param(
            model("s = Shape(x) f = Cast<to=1>(s) y = Mul(x, f)", dims="n,2", result="n,2"), (1, 256), None, id="two floats"
        ),
        pytest.param(
            model("d = Sub(size, c) b = Cast<to=9>(d) f = Cast<to=1>(b) y = Mul(x, f)", c=[1]), (2, 150), 1, id="not 0"
        ),
    ],
)  # fmt: skip
def test_what_depends_on_a_size_holds_beyond_the_samples(
    proto: onnx.ModelProto, served: Sequence[int], refused: int | None
) -> None:
    serves(proto, served, refused)


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (model("y = Resize(x, , s)", dims="n,2", s=np.array([0.01, 1], np.float32)), "Resize makes the same of every"),
        (model("y" + "".join(f", o{i}" for i in range(29)) + " = Split<axis=0, num_outputs=30>(x)"), "a quotient of"),
        (model("y = Slice(x, first, size, first, size)"), "a step or an axis that is a dynamic dimension"),
        (model(FLOATS, low=np.float32(100.5), step=np.float32(1)), "in steps, that are not whole"),
        (model(FLOATS, low=np.float32(0), step=np.float32(2.5)), "in steps, that are not whole"),
    ],
    ids=["resize", "split", "step", "start of a half", "step of a half"],
)
def test_what_is_the_same_at_all_samples_is_no_constant(proto: onnx.ModelProto, message: str) -> None:
    with pytest.raises(DynamicDimensionError, match=message):
        hipdnn_mlir.compile(proto)
