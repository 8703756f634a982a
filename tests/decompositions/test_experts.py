"""MoE and QMoE in compiled programs, against ONNX Runtime's CPU provider and NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hipdnn_mlir
from decompositions.node_models import Arrays, node_model, run
from hipdnn_mlir_runtime.errors import UnsupportedError

EXPERTS, HIDDEN, INNER = 5, 64, 32
SWIGLU = {
    "activation_type": "swiglu",
    "swiglu_fusion": 1,
    "activation_alpha": 1.702,
    "activation_beta": 1.0,
    "swiglu_limit": 1.5,
}
"""As gpt-oss has it, with a limit that matters here."""
_ROUNDING = 2e-5
"""Of the largest result: sums of float32, in their own order."""


def floats(*dims: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *dims]).standard_normal(dims).astype(np.float32)


def routed(rows: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {"x": floats(*rows, HIDDEN), "router": 2 * floats(int(np.prod(rows)), EXPERTS, seed=1)}


def float_experts(width: int, *, biases: bool = True, third: bool = False) -> dict[str, np.ndarray]:
    """Weights of experts whose first matrix has that many rows."""
    inputs = {"w1": floats(EXPERTS, width, HIDDEN) / 8, "w2": floats(EXPERTS, HIDDEN, INNER, seed=2) / 6}
    if biases:
        inputs |= {"b1": floats(EXPERTS, width), "b2": floats(EXPERTS, HIDDEN, seed=2)}
    if third:
        inputs |= {"w3": floats(EXPERTS, INNER, HIDDEN, seed=3) / 8}
    return inputs


def code_experts(width: int, bits: int, block: int, *, zeros: bool) -> dict[str, np.ndarray]:
    """Codes, scales, biases, zero points: one scale for a row where the block is 0."""
    rng = np.random.default_rng([width, bits, block])
    inputs: dict[str, np.ndarray] = {}
    for name, n, depth in (("1", width, HIDDEN), ("2", HIDDEN, INNER)):
        blocks = (depth // block,) if block else ()
        inputs[f"w{name}"] = rng.integers(0, 256, (EXPERTS, n, depth * bits // 8)).astype(np.uint8)
        inputs[f"s{name}"] = ((rng.random((EXPERTS, n, *blocks)) + 0.5) / 2**bits / 4).astype(np.float32)
        inputs[f"b{name}"] = floats(EXPERTS, n, seed=len(inputs))
        if zeros:
            dims = (n, -(-blocks[0] * bits // 8)) if block else (-(-n * bits // 8),)
            inputs[f"z{name}"] = rng.integers(0, 256, (EXPERTS, *dims)).astype(np.uint8)
    return inputs


FLOAT_NAMES = ("x", "router", "w1", "b1", "w2", "b2", "w3")
CODE_NAMES = ("x", "router", "w1", "s1", "b1", "w2", "s2", "b2", "", "", "", "z1", "z2", "", "mix")


def model_of(op: str, inputs: Arrays, **attributes: Any) -> Any:
    names = [name if name in inputs else "" for name in (FLOAT_NAMES if op == "MoE" else CODE_NAMES)]
    while not names[-1]:
        names.pop()
    constants = [name for name in inputs if name not in ("x", "router", "mix")]
    return node_model(op, inputs, operands=names, constants=constants, **attributes)


def computed(model: Any, inputs: Arrays) -> np.ndarray:
    session = hipdnn_mlir.compile(model).session()
    (got,) = session.run(None, {port.name: inputs[port.name] for port in session.inputs})
    return got


def assert_near(got: np.ndarray, want: np.ndarray, tolerance: float = _ROUNDING) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert np.abs(got.astype(np.float64) - want).max() <= tolerance * np.abs(want).max()


def weights_of(inputs: Arrays, number: str, bits: int, block: int) -> np.ndarray:
    """What the codes of a matrix stand for, in float64."""
    packed = inputs[f"w{number}"]
    halves = [packed & 15, packed >> 4] if bits == 4 else [packed]
    codes = np.stack(halves, -1).reshape(*packed.shape[:2], -1).astype(np.float64)
    zero: Any = 1 << (bits - 1)
    scale = inputs[f"s{number}"].astype(np.float64)
    size = block or codes.shape[2]
    if f"z{number}" in inputs:
        stored = inputs[f"z{number}"]
        parts = [stored & 15, stored >> 4] if bits == 4 else [stored]
        lines = np.stack(parts, -1).reshape(*stored.shape[:-1], -1)
        every = lines[..., : codes.shape[2] // size] if block else lines[..., : codes.shape[1], np.newaxis]
        zero = np.repeat(every.astype(np.float64), size, -1)
    return (codes - zero) * np.repeat(scale.reshape(*codes.shape[:2], -1), size, -1)


def expected(inputs: Arrays, w1: np.ndarray, w2: np.ndarray, k: int, *, normalizes: bool) -> np.ndarray:
    """A mixture with the activation of SWIGLU, in float64."""
    x, router = (inputs[name].astype(np.float64).reshape(-1, inputs[name].shape[-1]) for name in ("x", "router"))
    result = np.zeros_like(x)
    shares = np.exp(router - router.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    for row, values in enumerate(x):
        chosen = np.argsort(-router[row], kind="stable")[:k]
        total = shares[row, chosen].sum() if normalizes else 1.0
        for expert in chosen:
            inner = w1[expert] @ values + inputs["b1"][expert]
            gate = np.minimum(inner[::2], SWIGLU["swiglu_limit"])
            linear = np.clip(inner[1::2], -SWIGLU["swiglu_limit"], SWIGLU["swiglu_limit"])
            active = gate / (1 + np.exp(-SWIGLU["activation_alpha"] * gate)) * (linear + SWIGLU["activation_beta"])
            result[row] += shares[row, expert] / total * (w2[expert] @ active + inputs["b2"][expert])
    return result.reshape(inputs["x"].shape).astype(np.float32)


@pytest.mark.parametrize("rows", [(1,), (2, 3), (150,)])
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("normalizes", [0, 1])
def test_experts_of_floats_are_mixed_as_documented(rows: tuple[int, ...], k: int, normalizes: int) -> None:
    inputs = routed(rows) | float_experts(2 * INNER)
    model = model_of("MoE", inputs, k=k, normalize_routing_weights=normalizes, **SWIGLU)
    got = computed(model, inputs)
    assert_near(got, expected(inputs, inputs["w1"], inputs["w2"], k, normalizes=bool(normalizes)))
    assert_near(got, run(model, inputs)[0])


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "identity"])
def test_activations_are_those_of_onnx_runtime(activation: str) -> None:
    inputs = routed((2, 3)) | float_experts(INNER)
    model = model_of("MoE", inputs, k=2, activation_type=activation)
    assert_near(computed(model, inputs), run(model, inputs)[0])


def test_experts_without_biases_are_those_of_onnx_runtime() -> None:
    inputs = routed((4,)) | float_experts(2 * INNER, biases=False)
    model = model_of("MoE", inputs, k=2, **SWIGLU)
    assert_near(computed(model, inputs), run(model, inputs)[0])


@pytest.mark.parametrize("rows", [(1,), (2, 3), (150,)])
@pytest.mark.parametrize(("bits", "block"), [(4, 16), (4, 32), (4, 0), (8, 32), (8, 0)])
@pytest.mark.parametrize("zeros", [False, True])
def test_experts_of_codes_are_mixed_as_documented(rows: tuple[int, ...], bits: int, block: int, *, zeros: bool) -> None:
    inputs = routed(rows) | code_experts(2 * INNER, bits, block, zeros=zeros)
    stated = {"block_size": block} if block else {}
    model = model_of("QMoE", inputs, k=2, expert_weight_bits=bits, normalize_routing_weights=1, **SWIGLU, **stated)
    w1, w2 = (weights_of(inputs, number, bits, block) for number in "12")
    assert_near(computed(model, inputs), expected(inputs, w1, w2, 2, normalizes=True))


@pytest.mark.parametrize("block", [32, 0])
@pytest.mark.parametrize("normalizes", [0, 1])
def test_codes_of_4_bits_are_those_of_onnx_runtime(block: int, normalizes: int) -> None:
    inputs = routed((2, 3)) | code_experts(2 * INNER, 4, block, zeros=False)
    stated = {"block_size": block} if block else {}
    model = model_of("QMoE", inputs, k=2, normalize_routing_weights=normalizes, **SWIGLU, **stated)
    assert_near(computed(model, inputs), run(model, inputs)[0])


@pytest.mark.parametrize("normalizes", [0, 1])
def test_shares_may_come_from_other_numbers_than_choices(normalizes: int) -> None:
    inputs = routed((4,)) | code_experts(2 * INNER, 4, 32, zeros=False)
    inputs["mix"] = np.abs(floats(4, EXPERTS, seed=9))
    model = model_of("QMoE", inputs, k=2, block_size=32, normalize_routing_weights=normalizes, **SWIGLU)
    assert_near(computed(model, inputs), run(model, inputs)[0])


@pytest.mark.parametrize("op", ["MoE", "QMoE"])
def test_rows_of_16_bits_are_near_those_of_onnx_runtime(op: str) -> None:
    weights = float_experts(2 * INNER) if op == "MoE" else code_experts(2 * INNER, 4, 32, zeros=False)
    wide = routed((6,)) | weights
    inputs = {name: array.astype(np.float16) if array.dtype == np.float32 else array for name, array in wide.items()}
    stated = {} if op == "MoE" else {"block_size": 32}
    model = model_of(op, inputs, k=2, normalize_routing_weights=1, **SWIGLU, **stated)
    assert_near(computed(model, inputs), run(model, inputs)[0], 4e-3)


def test_one_program_serves_all_numbers_of_rows() -> None:
    inputs = routed((6,)) | float_experts(2 * INNER)
    model = model_of("MoE", inputs, k=2, **SWIGLU)
    for port in model.graph.input:
        port.type.tensor_type.shape.dim[0].dim_param = "rows"
    session = hipdnn_mlir.compile(model).session()
    for rows in (1, 6, 150):
        feeds = routed((rows,))
        assert_near(session.run(None, feeds)[0], run(model, feeds)[0])


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"use_sparse_mixer": 1, "k": 2}, "use_sparse_mixer"),
        ({"activation_type": "geglu", "swiglu_fusion": 1}, "activation geglu with swiglu_fusion 1"),
    ],
)
def test_what_is_not_computed_of_floats_is_refused_with_a_reason(attributes: dict[str, Any], message: str) -> None:
    inputs = routed((2,)) | float_experts(2 * INNER)
    with pytest.raises(UnsupportedError, match=message):
        hipdnn_mlir.compile(model_of("MoE", inputs, **attributes))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"weights_prepacked": 1}, "in the order of another provider's kernels"),
        ({"expert_weight_bits": 2}, "experts of 2 bits, expected 4 or 8"),
        ({"quant_type": "fp4"}, "experts of fp4"),
    ],
)
def test_what_is_not_computed_of_codes_is_refused_with_a_reason(attributes: dict[str, Any], message: str) -> None:
    inputs = routed((2,)) | code_experts(2 * INNER, 4, 32, zeros=False)
    with pytest.raises(UnsupportedError, match=message):
        hipdnn_mlir.compile(model_of("QMoE", inputs, block_size=32, **SWIGLU, **attributes))


def test_codes_by_rows_of_the_depth_are_refused_with_a_reason() -> None:
    """As onnxruntime-genai's builder stores them for CUDA, without a word."""
    inputs = routed((2,)) | code_experts(2 * INNER, 4, 32, zeros=False)
    experts, n, width = inputs["w2"].shape
    inputs["w2"] = inputs["w2"].reshape(experts, 2 * width, n // 2)
    with pytest.raises(UnsupportedError, match="another provider's kernels: export them with qmoe_weights_prepacked=0"):
        hipdnn_mlir.compile(model_of("QMoE", inputs, block_size=32, **SWIGLU))


def square_experts(dtype: Any) -> dict[str, np.ndarray]:
    """Rows of a type, and codes of 4 bits of matrices that have one size both ways."""
    inputs = {"x": floats(4, HIDDEN), "router": 2 * floats(4, EXPERTS, seed=1)}
    rng = np.random.default_rng(5)
    for name in "12":
        inputs[f"w{name}"] = rng.integers(0, 256, (EXPERTS, HIDDEN, HIDDEN // 2)).astype(np.uint8)
        inputs[f"s{name}"] = ((rng.random((EXPERTS, HIDDEN, HIDDEN // 32)) + 0.5) / 64).astype(np.float32)
    return {name: array.astype(dtype) if array.dtype == np.float32 else array for name, array in inputs.items()}


def test_square_experts_of_16_bits_are_refused_where_nothing_tells_their_order() -> None:
    """Transposed ones have the same sizes. With `weights_prepacked` 0 they are taken as ONNX Runtime's CPU provider takes them."""
    inputs = square_experts(np.float16)
    stated = {"k": 2, "block_size": 32, "activation_type": "silu"}
    with pytest.raises(UnsupportedError, match=r"square matrices in 16 bits.*qmoe_weights_prepacked=0"):
        hipdnn_mlir.compile(model_of("QMoE", inputs, **stated))
    got = computed(model_of("QMoE", inputs, **stated, weights_prepacked=0), inputs)
    assert_near(got, run(model_of("QMoE", inputs, **stated), inputs)[0], 4e-3)


def test_square_experts_of_32_bits_have_one_order() -> None:
    """CUDA's kernels take no rows of float32."""
    inputs = square_experts(np.float32)
    model = model_of("QMoE", inputs, k=2, block_size=32, activation_type="silu")
    assert_near(computed(model, inputs), run(model, inputs)[0])
