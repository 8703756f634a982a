"""Small graphs that each pin one thing the compiler can get wrong: values against ONNX Runtime, and the number of steps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnxruntime
import pytest
from onnx import numpy_helper, parser

import hipdnn_mlir
from hipdnn_mlir_runtime.errors import UnsupportedError

F32_TOLERANCE = {"rtol": 2e-5, "atol": 2e-5}


@dataclass(frozen=True)
class Case:
    """A graph in ONNX's text form; weights by name and dims; how many executes and copies it becomes."""

    name: str
    graph: str
    executes: int
    copies: int = 0
    weights: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


AXIS0, AXIS1 = "Constant<value_ints=[0]>()", "Constant<value_ints=[1]>()"
CASES = [
    Case(
        "reduced_dim_is_dropped_before_broadcast",
        f"(float[3,3] x, float[3,3] y) => (float[3,3] z) {{ a = {AXIS1} s = ReduceSum<keepdims=0>(x, a) z = Add(s, y) }}",
        2,
    ),
    Case(
        "reduced_rows_of_another_shape",
        f"(float[3,4] x) => (float[4] z) {{ a = {AXIS0} s = ReduceSum<keepdims=0>(x, a) z = Softmax<axis=0>(s) }}",
        2,
    ),
    Case(
        "product_with_a_vector_broadcasts",
        """(float[3,4] x, float[4] v, float[3,3] y) => (float[3,3] z) {
             s = MatMul(x, v) z = Add(s, y) }""",
        2,
    ),
    Case("smaller_operand_first", "(float[3] b, float[2,3] x) => (float[2,3] z) { z = Add(b, x) }", 1),
    Case(
        "pad_in_front_of_relu",
        """(float[1,2,4] x) => (float[1,2,7] z) {
             p = Constant<value_ints=[0,0,1,0,0,2]>() y = Pad(x, p) z = Relu(y) }""",
        3,
    ),
    Case(
        "border_of_channels_last_value",
        """(float[1,2,4,4] x, float[2,2,3,3] w) => (float[1,2,8,8] z) {
             y = Conv<pads=[1,1,1,1]>(x, w) p = Constant<value_ints=[0,0,2,2,0,0,2,2]>() one = Constant<value_float=1.0>()
             q = Pad(y, p, one) z = Conv<pads=[1,1,1,1]>(q, w) }""",
        4,
    ),
    Case(
        "border_read_twice",
        """(float[1,2,4,4] x, float[2,2,3,3] w) => (float[1,2,8,8] z) {
             y = Conv<pads=[1,1,1,1]>(x, w) p = Constant<value_ints=[0,0,2,2,0,0,2,2]>() q = Pad(y, p) r = Exp(q) z = Add(q, r) }""",
        4,
    ),
    Case(
        "border_around_a_border",
        """(float[2,4] x) => (float[6,8] z) {
             p = Constant<value_ints=[1,1,1,1]>() one = Constant<value_float=1.0>() r = Relu(x)
             y = Pad(r, p, one) z = Pad(y, p) }""",
        3,
    ),
    Case(
        "empty_border_of_what_is_returned",
        "(float[4] x) => (float[4] z) { p = Constant<value_ints=[0,0]>() y = Tanh(x) z = Pad(y, p) }",
        2,
    ),
    Case("value_returned_twice", "(float[3] x) => (float[3] z, float[3] y) { z = Relu(x) y = Identity(z) }", 2),
    Case("input_returned_twice", "(float[3] x) => (float[3] z, float[3] y) { z = Identity(x) y = Identity(x) }", 1, 1),
    Case(
        "value_and_views_of_it_returned",
        """(float[2,3] x) => (float[2,3] z, float[3,2] t, float[1,6] f) {
             z = Relu(x) t = Transpose<perm=[1,0]>(z) f = Flatten<axis=0>(z) }""",
        2,
        1,
    ),
    Case(
        "constant_returned",
        """(float[3] x) => (float[3] z, float[3] y) {
             z = Add(x, w) y = Add(w, w) }""",
        1,
        1,
        {"w": (3,)},
    ),
    Case("unused_input", "(float[3] x, float[2] q) => (float[3] z) { z = Relu(x) }", 1),
    Case("concat_of_one_value_twice", "(float[2] x) => (float[4] z) { y = Relu(x) z = Concat<axis=0>(y, y) }", 1, 1),
    Case(
        "concat_read_and_concatenated_again",
        """(float[2] x, float[2] y) => (float[8] z) {
             a = Relu(x) b = Exp(y) c = Concat<axis=0>(a, b) d = Tanh(c) z = Concat<axis=0>(c, d) }""",
        3,
    ),
    Case(
        "concat_of_channels",
        """(float[1,2,4,4] x, float[2,2,3,3] w, float[2,4,3,3] v) => (float[1,2,4,4] z) {
             a = Conv<pads=[1,1,1,1]>(x, w) b = Conv<pads=[1,1,1,1]>(a, w) c = Concat<axis=1>(a, b) z = Conv<pads=[1,1,1,1]>(c, v) }""",
        4,
    ),
    Case(
        "flatten_after_convolution",
        """(float[2,2,4,4] x, float[3,2,3,3] w, float[48,5] v) => (float[2,5] z) {
             a = Conv<pads=[1,1,1,1]>(x, w) b = Flatten(a) z = MatMul(b, v) }""",
        3,
    ),
    Case(
        "attention",
        """(float[2,5,8] x, float[8,24] w) => (float[2,5,8] z) {
             a = MatMul(x, w) parts = Constant<value_ints=[8,8,8]>() q, k, v = Split<axis=2>(a, parts)
             heads = Constant<value_ints=[2,5,2,4]>()
             q4 = Reshape(q, heads) k4 = Reshape(k, heads) v4 = Reshape(v, heads)
             qt = Transpose<perm=[0,2,1,3]>(q4) kt = Transpose<perm=[0,2,3,1]>(k4) vt = Transpose<perm=[0,2,1,3]>(v4)
             s = MatMul(qt, kt) p = Softmax<axis=-1>(s) o = MatMul(p, vt) ot = Transpose<perm=[0,2,1,3]>(o)
             joined = Constant<value_ints=[2,5,8]>() z = Reshape(ot, joined) }""",
        2,
    ),
    Case(
        "slice_with_steps",
        """(float[4,6] x) => (float[2,2] z) {
             s = Constant<value_ints=[1,1]>() e = Constant<value_ints=[4,6]>()
             a = Constant<value_ints=[0,1]>() t = Constant<value_ints=[2,3]>() y = Slice(x, s, e, a, t)
             z = Relu(y) }""",
        1,
    ),
    Case("scalars", "(float x, float y) => (float z) { a = Add(x, y) z = Relu(a) }", 1),
    Case(
        "batch_norm_of_computed_constants",
        "(float[1,2,4,4] x) => (float[1,2,4,4] z) { y = Conv<pads=[1,1,1,1]>(x, w) v = Mul(s, s) z = BatchNormalization(y, s, s, s, v) }",
        2,
        weights={"w": (2, 2, 3, 3), "s": (2,)},
    ),
]  # fmt: skip


def model_of(case: Case, generator: np.random.Generator) -> bytes:
    made = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 21]> g {case.graph}')
    for name, dims in case.weights.items():
        array = generator.standard_normal(dims, np.float32)
        made.graph.initializer.append(numpy_helper.from_array(array, name))
    return made.SerializeToString()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_and_steps(case: Case) -> None:
    generator = np.random.default_rng(0)
    data = model_of(case, generator)
    program = hipdnn_mlir.compile(data)
    inputs = {port.name: np.asarray(generator.standard_normal(port.dims, np.float32)) for port in program.model.inputs}
    expected = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, inputs)
    found = program.session().run(None, inputs)
    for got, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, reference, **F32_TOLERANCE)
    kinds = [step.kind for step in program.model.steps]
    assert (kinds.count("execute"), kinds.count("copy")) == (case.executes, case.copies)


REJECTED = [
    (
        "(float[1,2,6,6] x) => (float[1,2,4,4] y, int64[1,2,4,4] i) { y, i = MaxPool<kernel_shape=[2,2], dilations=[2,2]>(x) }",
        "MaxPool",
        "attribute",
    ),
    ("(float[4,3] x, float[4] s) => (float[8,6] y) { y = Resize(x, , s) }", "Resize", "operand"),
    (
        "(double[1,4,6,6] x, double[4,4,3,3] w) => (double[1,4,4,4] y) { y = Conv(x, w) }",
        "Conv (torch.aten.convolution)",
        "dtype",
    ),
]


@pytest.mark.parametrize(("graph", "op", "rule"), REJECTED)
def test_unsupported_node_is_named_with_its_rule(graph: str, op: str, rule: str) -> None:
    data = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 21]> g {graph}').SerializeToString()
    with pytest.raises(UnsupportedError) as caught:
        hipdnn_mlir.compile(data)
    assert [(reject.op, reject.rule) for reject in caught.value.rejects] == [(op, rule)]
    assert caught.value.rejects[0].node
