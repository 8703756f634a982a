"""Arithmetic on weights is done when a model is compiled, whatever it is made of: against ONNX Runtime, which does it in each run."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper

import hipdnn_mlir

STANDARDIZED = """g (float[1,8,6,6] x) => (float[1,16,4,4] y)
    <int64[3] rows = {1,16,-1}, int64[4] filters = {16,8,3,3}, float[16] none = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}> {
        r = Reshape(filter, rows) n, mean, var = BatchNormalization<training_mode=1, epsilon=1e-6>(r, gain, none, none, none)
        f = Reshape(n, filters) y = Conv(x, f) }"""
WRITTEN_OUT = """g (float[1,8,6,6] x) => (float[1,16,4,4] y) <float eps = {1e-6}> {
        m = ReduceMean<axes=[1,2,3]>(filter) d = Sub(filter, m) s = Mul(d, d) v = ReduceMean<axes=[1,2,3]>(s)
        e = Add(v, eps) r = Sqrt(e) f = Div(d, r) y = Conv(x, f) }"""
HALVES = """g (float[4,64] x) => (float[4,48] y)
    <uint8 base = {16}, int64[1] last = {2}, int64[2] all = {48,64}, float eight = {8}> {
        low = Mod(q, base) high = Div(q, base) l = Unsqueeze(low, last) h = Unsqueeze(high, last)
        c = Concat<axis=2>(l, h) i = Reshape(c, all) f = Cast<to=1>(i) z = Sub(f, eight) w = Mul(z, scale)
        t = Transpose<perm=[1,0]>(w) y = MatMul(x, t) }"""
OUTER = "g (float[2,2048] x) => (float[2,2048] y) { w = Mul(column, row) y = MatMul(x, w) }"
REPVGG = """g (float[1,8,6,7] x) => (float[1,8,6,7] y) {
        a = Conv<pads=[1,1,1,1]>(x, w3, shift) b = Conv(x, w1) m = BatchNormalization(b, factor, shift, factor, variance)
        i = BatchNormalization(x, factor, shift, factor, variance) s = Add(i, m) t = Add(s, a) y = Relu(t) }"""
REPVIT = """g (float[1,8,6,7] x) => (float[1,8,6,7] y) {
        a = Conv<pads=[1,2,1,2], dilations=[1,2], group=8>(x, d3, shift) b = Conv<group=8>(x, d1) s = Add(a, b) t = Add(s, x)
        y = BatchNormalization(t, factor, shift, factor, variance) }"""
DENSE = """g (float[1,8,6,7] x) => (float[1,8,6,7] y) {
        s = Conv<pads=[1,1,1,1]>(x, w3) n = BatchNormalization(s, factor, shift, factor, variance) a = Relu(n) b = Conv(a, w1)
        c = Concat<axis=1>(s, b) d = Conv(c, w16) e = Concat<axis=1>(s, b, d) f = Conv(e, w24)
        g = Concat<axis=1>(s, b, d, f) y = Conv(g, w32) }"""
_ARRAYS = {
    **{f"w{8 * count}": (8, 8 * count, 1, 1) for count in (2, 3, 4)},
    "w3": (8, 8, 3, 3),
    "w1": (8, 8, 1, 1),
    "d3": (8, 1, 3, 3),
    "d1": (8, 1, 1, 1),
    "factor": (8,),
    "shift": (8,),
    "filter": (16, 8, 3, 3),
    "gain": (16,),
    "scale": (48, 1),
    "column": (2048, 1),
    "row": (1, 2048),
}


def _model(text: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 17]> {text}')
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal(dims, np.float32) for name, dims in _ARRAYS.items()}
    given = {
        **arrays,
        "variance": rng.uniform(0.5, 2, 8).astype(np.float32),
        "q": rng.integers(0, 256, (48, 32), np.uint8),
    }
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(array, n) for n, array in given.items() if n in read)
    return model


def _steps_of_checked(model: onnx.ModelProto) -> list[str]:
    program = hipdnn_mlir.compile(model)
    dims = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(1).standard_normal(dims, np.float32)
    (got,) = program.session().run(None, {"x": x})
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(got, reference.run(None, {"x": x})[0], rtol=1e-4, atol=1e-4)
    return [program.model.executables[step.executable].summary for step in program.model.steps]


@pytest.mark.parametrize("text", [STANDARDIZED, WRITTEN_OUT], ids=["batch norm", "written out"])
def test_weights_are_standardized_when_the_model_is_compiled(text: str) -> None:
    assert [step for step in _steps_of_checked(_model(text)) if step != "copy"] == ["conv2d"]


def test_weights_of_four_bits_are_unpacked_when_the_model_is_compiled() -> None:
    assert _steps_of_checked(_model(HALVES)) == ["matmul"]


def test_a_constant_is_computed_in_each_run_when_it_is_much_larger_than_what_it_is_made_of() -> None:
    assert _steps_of_checked(_model(OUTER)) == ["mul", "matmul"]
    assert sum(array.nbytes for array in hipdnn_mlir.compile(_model(OUTER)).weights.values()) < 1 << 20


@pytest.mark.parametrize(
    ("text", "wanted"), [(REPVGG, "conv2d + add + relu"), (REPVIT, "conv2d + add")], ids=["repvgg", "repvit"]
)
def test_branches_of_a_block_are_one_convolution(text: str, wanted: str) -> None:
    assert [step for step in _steps_of_checked(_model(text)) if step != "copy"] == [wanted]


def test_layers_of_a_dense_block_write_into_one_concatenation() -> None:
    steps = _steps_of_checked(_model(DENSE))
    assert steps[0] == "copy"  # the caller's image, channels-last
    assert steps[1:] == ["conv2d", "mul + add + relu", "conv2d", "conv2d", "conv2d", "conv2d"]


def test_products_of_constants_read_weights_as_a_gpu_stores_them() -> None:
    """Such weights are transposed; all of this attention is made when the model is compiled."""
    rng = np.random.default_rng(0)
    weights = {"x": rng.normal(size=(1, 5, 24)), "w": rng.normal(size=(24, 72)), "b": rng.normal(size=72)}
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
        g () => (float[1,5,24] y) { y = com.microsoft.Attention<num_heads=3, unidirectional=0>(x, w, b) }"""
    )
    model.graph.initializer.extend(numpy_helper.from_array(v.astype(np.float32), n) for n, v in weights.items())
    (want,) = ort.InferenceSession(model.SerializeToString()).run(None, {})
    program = hipdnn_mlir.compile(model, target="gfx942")
    (constant,) = program.model.constants
    np.testing.assert_allclose(program.tensors[constant.tensor], want, rtol=1e-4, atol=1e-4)
