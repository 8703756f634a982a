"""Kernels for what hipDNN has no operation for: how many steps and copies a model takes, and that its values are ONNX Runtime's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi import onnxruntime_pybind11_state as onnxruntime_errors

import hipdnn_mlir
from hipdnn_mlir_runtime.errors import DeviceError, UnsupportedError


@dataclass(frozen=True)
class Case:
    """A graph, and the summaries of the steps it takes, in order."""

    graph: str
    steps: tuple[str, ...]
    low: int = -7


CASES = {
    "embedding": Case(
        "(int64[2,5] i) => (float[2,5,4] y) <float[8,4] w = {"
        + ",".join(map(str, range(32)))
        + "}> { y = Gather(w, i) }",
        ("gather",),
    ),
    "embedding-i32": Case("(float[8,4] w, int32[3] i) => (float[3,4] y) { y = Gather(w, i) }", ("gather",)),
    "gather-reads-transposed-data-where-it-lies": Case(
        "(float[4,8] x, int64[3] i) => (float[3,4] y) { t = Transpose<perm=[1,0]>(x) y = Gather(t, i) }", ("gather",)
    ),
    "gather-of-one-known-index-is-a-view": Case(
        "(float[4,8] x) => (float[8] y) <int64 i = {-1}> { r = Gather<axis=0>(x, i) y = Relu(r) }", ("relu",)
    ),
    "gathers-write-into-a-concatenation": Case(
        "(float[8,4] w, int64[3] i, int64[2] j) => (float[5,4] y) { a = Gather(w, i) b = Gather(w, j) y = Concat<axis=0>(a, b) }",
        ("gather", "gather"),
    ),
    "elementwise-chain-is-one-map": Case(
        """(int16[3,4] x, int16[4] y) => (bool[3,4] z) {
             s = Add(x, y) d = Mul(s, x) m = Max(d, y) z = Greater(m, x) }""",
        ("add + mul + max + gt",),
    ),
    "map-reads-transposed-operand-where-it-lies": Case(
        "(int16[3,4] x, int16[4,3] y) => (int16[3,4] z) { t = Transpose<perm=[1,0]>(y) z = Sub(x, t) }", ("sub",)
    ),
    "hipdnn-comes-first": Case(
        "(float[3,4] x) => (float[3,4] y) { a = Asin(x) r = Exp(a) y = Neg(r) }", ("asin", "exp + neg"), low=0
    ),
    "transpose-of-16-bit-integers": Case(
        "(int16[2,3] x) => (int16[3,2] y) { y = Transpose<perm=[1,0]>(x) }", ("copy",)
    ),
    "slice-backwards": Case(
        """(float[4,3] x) => (float[2,3] y) <int64[1] s = {-1}, int64[1] e = {-9}, int64[1] a = {0}, int64[1] t = {-2}> {
             y = Slice(x, s, e, a, t) }""",
        ("slice",),
    ),
    "indices-of-top-k-alone": Case(
        "(float[3,9] x) => (int64[3,2] i) <int64[1] k = {2}> { v, i = TopK(x, k) }", ("top_k",)
    ),
    "trilu-after-gather": Case(
        "(float[8,4,4] w, int64[2] i) => (float[2,4,4] y) { g = Gather(w, i) y = Trilu(g) }",
        ("gather", "sub + ge + where"),
    ),
    "one-hot": Case(
        "(int64[3] i, float[2] v) => (float[3,8] y) <int64 d = {8}> { y = OneHot(i, d, v) }",
        ("lt + add + where + eq + where",),
    ),
    "tile": Case("(float[2,3] x) => (float[4,9] y) <int64[2] r = {2,3}> { y = Tile(x, r) }", ("copy",)),
}


def compiled(graph: str) -> tuple[onnx.ModelProto, hipdnn_mlir.Program]:
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 21]> g {graph}')
    return model, hipdnn_mlir.compile(model.SerializeToString())


def feeds(model: onnx.ModelProto, low: int) -> dict[str, np.ndarray]:
    """Random inputs; integers from -3 on, so that they are indices as well."""
    rng = np.random.default_rng(0)
    made = {}
    initialized = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in initialized:
            continue
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        is_float = np.issubdtype(kind, np.floating)
        made[value.name] = (rng.uniform(max(low, -1), 1, dims) if is_float else rng.integers(-3, 4, dims)).astype(kind)
    return made


def reference_run(model: onnx.ModelProto, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    """ONNX Runtime's results, or onnx's reference evaluator's where that lacks an operator in a type."""
    try:
        return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, given)
    except onnxruntime_errors.NotImplemented:
        return ReferenceEvaluator(model).run(None, given)


@pytest.mark.parametrize("name", CASES)
def test_launches_equal_onnxruntime_in_the_expected_steps(name: str) -> None:
    case = CASES[name]
    model, program = compiled(case.graph)
    assert [program.model.summary(step) for step in program.model.steps] == list(case.steps)
    given = feeds(model, case.low)
    found = program.session().run(None, given)
    for got, reference in zip(found, reference_run(model, given), strict=True):
        assert got.dtype == reference.dtype
        np.testing.assert_allclose(got, reference, rtol=1e-6)


def test_equal_launches_share_a_kernel() -> None:
    _, program = compiled(
        "(int16[3] x, int16[3] y) => (int16[3] a, int16[3] b) { a = BitwiseNot(x) b = BitwiseNot(y) }"
    )
    assert (len(program.model.kernels), len(program.model.steps)) == (1, 2)


def test_index_out_of_range_names_the_step() -> None:
    model = parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 21]> g (float[8,4] w, int64[3] i) => (float[3,4] y) { y = Gather(w, i) }'
    )
    model.graph.node[0].name = "embedding"
    session = hipdnn_mlir.compile(model.SerializeToString()).session()
    with pytest.raises(DeviceError, match=r"embedding.*index 8 is out of range"):
        session.run(None, {"w": np.zeros((8, 4), np.float32), "i": np.array([0, 8, 1])})


def test_operand_that_must_be_known_is_named() -> None:
    with pytest.raises(UnsupportedError) as caught:
        compiled("(float[4,3] x, float[2] s) => (float[8,6] y) { y = Resize(x, , s) }")
    (reject,) = caught.value.rejects
    assert (reject.op, reject.rule) == ("Resize", "operand")
    assert "scales" in reject.reason


def test_axes_that_follow_from_the_sizes_need_no_value() -> None:
    model, program = compiled("(float[2,3,4] x, int64[1] a) => (float[2,1,4] y) { y = ReduceMax(x, a) }")
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    (y,) = program.session().run(None, {"x": x, "a": np.array([1])})
    np.testing.assert_array_equal(y, x.max(1, keepdims=True))
    assert [value.name for value in model.graph.input] == [port.name for port in program.model.inputs]


def test_axes_with_two_answers_are_not_guessed() -> None:
    with pytest.raises(UnsupportedError):
        compiled("(float[2,3,3] x, int64[1] a) => (float[2,3] y) { y = ReduceMax<keepdims=0>(x, a) }")
