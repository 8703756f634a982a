"""Random operators with a seed, bit by bit against onnx's reference implementation; those without one are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import hipdnn_mlir
from hipdnn_mlir_runtime.errors import UnsupportedError

TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16}
X = np.random.default_rng(0).random((3, 40)).astype(np.float32)


def model_of(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 22]> {text}')


def assert_is_reference(text: str, **feeds: np.ndarray) -> list[np.ndarray]:
    """Assert that the compiled model gives exactly what onnx's reference implementation gives; return that."""
    model = model_of(text)
    want = ReferenceEvaluator(model).run(None, feeds)
    got = hipdnn_mlir.load(hipdnn_mlir.compile(model)).run(None, feeds)
    for one, other in zip(got, want, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    return got


def refusal(text: str) -> str:
    with pytest.raises(UnsupportedError) as refused:
        hipdnn_mlir.compile(model_of(text))
    return str(refused.value)


@pytest.mark.parametrize("dtype", ["float", "double", "float16", "bfloat16"])
@pytest.mark.parametrize("op", ["RandomUniform", "RandomNormal"])
def test_numbers_of_a_shape_are_those_of_the_reference(op: str, dtype: str) -> None:
    moved = "low = -1.5, high = 0.3" if op == "RandomUniform" else "mean = -1.5, scale = 0.3"
    kind = onnx.TensorProto.DataType.Value(dtype.upper())
    assert_is_reference(
        f"g () => ({dtype}[3, 5] y) {{ y = {op} <dtype = {kind}, seed = 7.0, shape = [3, 5], {moved}> () }}"
    )


@pytest.mark.parametrize("op", ["RandomUniformLike", "RandomNormalLike"])
def test_numbers_like_a_value_have_its_sizes_and_type(op: str) -> None:
    nodes = f"y = {op} <seed = 7.9> (x) z = {op} <dtype = 11, seed = 7.0> (x)"
    text = f"g (float16[3, 40] x) => (float16[3, 40] y, double[3, 40] z) {{ {nodes} }}"
    assert_is_reference(text, x=X.astype(np.float16))


@pytest.mark.parametrize(("dtype", "result"), [("float", "float"), ("float", "int32"), ("float16", "bool")])
def test_bernoulli_is_that_of_the_reference_next_to_every_threshold(dtype: str, result: str) -> None:
    drawn = np.random.RandomState(7).random_sample(2000)
    kind = TYPES[dtype]
    near = np.where(np.arange(2000) % 2, drawn, 1 - drawn).astype(kind)
    offset = np.arange(2000) % 3 - 1
    p = np.where(offset == 0, near, np.nextafter(near, (near + offset).astype(kind)))
    p[:60] = np.resize([0, 0.5, 1], 60)
    assert np.unique(p > 0.5).size == 2
    number = onnx.TensorProto.DataType.Value(result.upper())
    text = f"g ({dtype}[2000] p) => ({result}[2000] y) {{ y = Bernoulli <dtype = {number}, seed = 7.0> (p) }}"
    assert_is_reference(text, p=np.clip(p, 0, 1).astype(kind))


def test_bernoulli_takes_probabilities_of_f64() -> None:
    text = "g (double[3, 40] p) => (double[3, 40] y) { y = Bernoulli <seed = 7.0> (p) }"
    assert_is_reference(text, p=np.random.default_rng(1).random((3, 40)))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.75])
def test_dropout_is_that_of_the_reference_when_runs_choose(ratio: float, training: bool) -> None:
    text = "g (float[3, 40] x, float r, bool t) => (float[3, 40] y, bool[3, 40] m) { y, m = Dropout <seed = 2147483647> (x, r, t) }"
    assert_is_reference(text, x=X, r=np.float32(ratio), t=np.array(training))


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_dropout_is_that_of_the_reference_when_it_always_trains(dtype: str) -> None:
    constants = f"{dtype} r = {{0.3}}, bool t = {{1}}"
    results = f"{dtype}[3, 40] y, bool[3, 40] m"
    text = f"g ({dtype}[3, 40] x) => ({results}) <{constants}> {{ y, m = Dropout <seed = 5> (x, r, t) }}"
    y, _ = assert_is_reference(text, x=X.astype(TYPES[dtype]))
    assert 0 < np.count_nonzero(y) < y.size


def test_dropout_of_f16_keeps_its_type_when_the_ratio_is_of_another() -> None:
    text = "g (float16[3, 40] x, bool t) => (float16[3, 40] y) { y = Dropout <seed = 5> (x, , t) }"
    given = X.astype(np.float16)
    (y,) = hipdnn_mlir.load(hipdnn_mlir.compile(model_of(text))).run(None, {"x": given, "t": np.array(True)})
    kept = np.random.RandomState(5).random_sample(X.shape) >= 0.5
    assert y.dtype == np.float16
    np.testing.assert_array_equal(y, np.where(kept, 2 * given, 0))


def test_dropout_needs_no_seed_when_a_node_says_that_it_does_not_train() -> None:
    assert_is_reference(
        "g (float[3, 40] x) => (float[3, 40] y, bool[3, 40] m) { r = Constant <value_float = 0.5> () "
        "t = Constant <value = bool {0}> () y, m = Dropout (x, r, t) }",
        x=X,
    )


def test_constant_takes_the_bytes_of_its_numbers_when_it_is_large(tmp_path: Path) -> None:
    text = "g (float16[300, 300] x) => (float16[300, 300] y) { u = RandomNormalLike <seed = 3.0> (x) y = Add (x, u) }"
    assert_is_reference(text, x=np.ones((300, 300), np.float16))
    program = hipdnn_mlir.compile(model_of(text))
    program.save(tmp_path / "model.hipdnn")
    assert (tmp_path / "model.hipdnn").stat().st_size < 2 * 300 * 300 + 8192


@pytest.mark.parametrize(
    "node",
    [
        "RandomUniform <shape = [3, 40]> ()", "RandomNormal <shape = [3, 40]> ()", "RandomUniformLike (x)", "RandomNormalLike (x)",
        "Bernoulli (x)", "Dropout (x, r, t)",
    ],
)  # fmt: skip
def test_node_without_a_seed_is_refused(node: str) -> None:
    text = f"g (float[3, 40] x, bool t) => (float[3, 40] y) <float r = {{0.3}}> {{ u = {node} y = Add (x, u) }}"
    assert "random numbers without a seed, but a program gives the same results at each run" in refusal(text)


def test_node_without_a_seed_does_no_harm_when_nothing_reads_it() -> None:
    assert_is_reference("g (float[3, 40] x) => (float[3, 40] y) { u = Bernoulli (x) v = Neg (u) y = Abs (x) }", x=X)


@pytest.mark.parametrize("seed", ["-1.0", "4294967296.0"])
def test_seed_is_refused_when_it_is_none_of_the_reference(seed: str) -> None:
    text = f"g (float[3] x) => (float[3] y) {{ y = RandomNormalLike <seed = {seed}> (x) }}"
    assert "expected a number from 0 to 2^32 - 1" in refusal(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g (float[3] x) => (int32[3] y) { y = RandomNormalLike <seed = 1.0, dtype = 6> (x) }", "dtype 6, expected one of 1, 11, 10, 16"),
        ("g () => (float[9] y) { y = RandomNormal <seed = 1.0, shape = [8193, 8193]> () }", "expected at most 67108864"),
        ("g () => (float[9] y) { y = RandomNormal <seed = 1.0, shape = [-1]> () }", "shape [-1]"),
    ],
)  # fmt: skip
def test_numbers_are_refused_when_no_constant_has_them(text: str, expected: str) -> None:
    assert expected in refusal(text)


@pytest.mark.parametrize(
    "node", ["RandomNormalLike <seed = 1.0> (x)", "Bernoulli <seed = 1.0> (x)", "Dropout <seed = 1> (x, , t)"]
)
def test_sizes_that_are_open_are_refused_with_what_makes_them_static(node: str) -> None:
    text = f"g (float[n, 40] x, bool t) => (float[n, 40] y) {{ y = {node} }}"
    message = refusal(text)
    assert "a constant, for which the sizes of the model have to be known" in message
    assert "--shape" in message
    hipdnn_mlir.compile(model_of(text), shapes={"n": 3})
    explained = hipdnn_mlir.explain(model_of(text))
    assert "for which the sizes of the model have to be known" in " ".join(str(explained).split())


def test_numbers_of_a_stated_shape_serve_every_size_of_the_model() -> None:
    text = (
        "g (float[n, 40] x) => (float[n, 40] y) { u = RandomUniform <seed = 7.0, shape = [1, 40]> () y = Add (x, u) }"
    )
    for rows in (1, 3):
        assert_is_reference(text, x=X[:rows])
