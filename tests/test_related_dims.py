"""Dynamic dimensions that a model's operators fix, or relate to each other, need no word of the user."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
from hipdnn_mlir.frontend.shape_inference import SizesContradictError, infer_shapes, unknown_results
from hipdnn_mlir_runtime.errors import ModelError

GQA = """
  y, pk, pv = com.microsoft.GroupQueryAttention<num_heads=4, kv_num_heads=2, do_rotary=0>(q, k, v, past_k, past_v, lengths, total)
"""
CASES: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "a mask over past and new": (
        """g (float[b,p,8] past, float[b,s,8] new, float[b,t] mask) => (float[b,p_s] y, float[b,p_s,8] present) {
           present = Concat<axis=1>(past, new) z = ReduceSum<keepdims=0>(present, axis) y = Add(z, mask) }""",
        {"past": (2, 3, 8), "new": (2, 4, 8), "mask": (2, 7)},
    ),
    "what is summed over": (
        "g (float[n,k] x) => (float[n,3] y) { y = MatMul(x, w) }",
        {"x": (5, 4)},
    ),
    "a size that is fixed by a constant of the same rank": (
        "g (float[n,c] x) => (float[m,c2] y) { y = Concat<axis=0>(x, w) }",
        {"x": (5, 3)},
    ),
    "a transposed Gemm": (
        "g (float[n,k] x) => (float[n,m] y) { y = Gemm<transB=1>(x, w) }",
        {"x": (2, 3)},
    ),
    "a first size that a Reshape states": (
        """g (float[b,s] x, float[c,t] mask) => (float[b,s] y, float[b,m] z) {
           s0 = Shape<start=0, end=1>(x) rest = Constant<value_ints=[-1]>() shape = Concat<axis=0>(s0, rest)
           z = Reshape(mask, shape) y = Relu(x) }""",
        {"x": (2, 5), "mask": (2, 3)},
    ),
    "two operands of three": (
        "g (bool[m,1] c, float[1,k] x, float[1,j] z) => (float[m,k] y) { y = Where(c, x, z) }",
        {"c": (2, 1), "x": (1, 5), "z": (1, 5)},
    ),
    "nothing is left open": (
        "g (float[n,k] x) => (float[n,k] y) { y = Add(x, w) }",
        {"x": (4, 3)},
    ),
    "a chain of two": (
        "g (float[n,k] x, float[m,j] z) => (float[n,3] y) { s = Add(x, z) y = MatMul(s, w) }",
        {"x": (2, 4), "z": (2, 4)},
    ),
}
"""Graph and sizes of a run."""


def _model(text: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]> {text}')
    rng = np.random.default_rng(1)
    constants = {
        "w": rng.standard_normal((4, 3), np.float32),
        "axis": np.array([2], np.int64),
    }
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(a, n) for n, a in constants.items() if n in used)
    return model


def _feeds(sizes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    return {
        n: rng.random(dims) < 0.5 if n == "c" else rng.standard_normal(dims, np.float32) for n, dims in sizes.items()
    }


def _expected(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)


@pytest.mark.parametrize("case", CASES)
def test_a_model_compiles_as_exported_when_its_operators_relate_sizes(case: str) -> None:
    text, sizes = CASES[case]
    model, feeds = _model(text), _feeds(sizes)
    results = hipdnn_mlir.compile(model).session().run(None, feeds)
    for got, want in zip(results, _expected(model, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_decoder_compiles_when_its_head_size_has_a_name() -> None:
    model = _model(
        f"""g (float[b,s,32] q, float[b,s,16] k, float[b,s,16] v, float[b,2,past,head] past_k, float[b,2,past,head] past_v,
              int32[b] lengths, int32 total) => (float[b,s,32] y, float[b,2,all,head] pk, float[b,2,all,head] pv) {{ {GQA} }}"""
    )
    session = hipdnn_mlir.compile(model).session()
    for past, new in ((0, 5), (5, 1), (9, 1)):
        sizes = {
            "q": (1, new, 32),
            "k": (1, new, 16),
            "v": (1, new, 16),
            "past_k": (1, 2, past, 8),
            "past_v": (1, 2, past, 8),
        }
        feeds = _feeds(sizes) | {
            "lengths": np.array([past + new - 1], np.int32),
            "total": np.array(past + new, np.int32),
        }
        for got, want in zip(session.run(None, feeds), _expected(model, feeds), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_code_for_exact_sizes_needs_no_buckets_for_sizes_that_operators_fix() -> None:
    text, _ = CASES["what is summed over"]
    program = hipdnn_mlir.compile(_model(text), target="sm_90", buckets={"n": [1, 2]})
    assert program.model.symbols == ["n"]
    assert [made.program.inputs[0].dims for made in program.model.specializations] == [(1, 4), (2, 4)]


def test_a_run_is_refused_when_its_sizes_break_the_relation() -> None:
    text, sizes = CASES["a mask over past and new"]
    session = hipdnn_mlir.compile(_model(text)).session()
    with pytest.raises(ModelError, match="mask"):
        session.run(None, _feeds(sizes | {"mask": (2, 6)}))


def test_a_name_stays_when_the_user_speaks_of_it() -> None:
    model = _model(CASES["a mask over past and new"][0])
    program = hipdnn_mlir.compile(model, shapes={"t": 7, "s": 4, "p": 3})
    assert [tuple(value.shape) for value in program.session().get_inputs()][-1] == ("b", 7)
    with pytest.raises(ModelError, match="cannot take"):
        hipdnn_mlir.compile(model, shapes={"t": 9, "s": 4, "p": 3})


def test_sizes_that_nothing_solves_are_named_with_the_operator() -> None:
    model = _model("g (float[n,3] x, float[n,4] z) => (float[n,3] y) { y = Add(x, z) }")
    with pytest.raises(ModelError, match=r"Add .* cannot take 'x' \d+x3, 'z' \d+x4"):
        hipdnn_mlir.compile(model)


def test_of_nodes_of_one_name_the_one_that_refuses_its_operands_is_told() -> None:
    model = _model("g (float[2,3] x, float[4] z) => (float[a,b] y) { [name] r = Relu(x) [name] y = Add(r, z) }")
    with pytest.raises(SizesContradictError, match=r"Add 'name' cannot take 'r' 2x3, 'z' 4"):
        unknown_results(infer_shapes(model), "model")


@pytest.mark.parametrize("node", ["y = Gemm(x, v)", "y = MatMul(x, scalar)"])
def test_operands_of_a_wrong_rank_are_a_model_error(node: str) -> None:
    model = _model(f"g (float[n,k] x, float[k] v, float scalar) => (float[n,3] y) {{ {node} }}")
    with pytest.raises(ModelError, match="x"):
        hipdnn_mlir.compile(model)
