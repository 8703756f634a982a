"""Norms, activations and fused products of ONNX Runtime: written out they give what its CPU provider gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from decompositions.node_models import assert_decomposes, decomposed, node_model, run

DTYPES = (np.float32, np.float16)


def numbers(*dims: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *dims]).standard_normal(dims).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("skip", [(2, 5, 8), (5, 8)])
def test_skip_layer_normalization_gives_the_same(skip: tuple[int, ...], dtype: Any) -> None:
    inputs = {"x": numbers(2, 5, 8, dtype=dtype), "skip": numbers(*skip, dtype=dtype, seed=1)}
    inputs |= {name: numbers(8, dtype=dtype, seed=seed) for seed, name in enumerate(("gamma", "beta", "bias"))}
    assert_decomposes("SkipLayerNormalization", inputs, ("y", "", "", "sum"), epsilon=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rms_norms_give_the_same(dtype: Any) -> None:
    inputs = {"x": numbers(2, 5, 8, dtype=dtype), "gamma": numbers(8, dtype=dtype)}
    skip = {"x": inputs["x"], "skip": numbers(2, 5, 8, dtype=dtype, seed=1), "gamma": inputs["gamma"]}
    assert_decomposes("SkipSimplifiedLayerNormalization", skip, ("y", "", "", "sum"))
    own = node_model("SimplifiedLayerNormalization", inputs, epsilon=1e-3)
    as_written_by_onnxruntime = node_model("SimplifiedLayerNormalization", inputs, domain="", epsilon=1e-3)
    (got,), (want,) = run(decomposed(own), inputs), run(as_written_by_onnxruntime, inputs)
    np.testing.assert_allclose(got, want, rtol=4e-3 if dtype == np.float16 else 1e-5, atol=1e-6)


@pytest.mark.parametrize("left_out", [(), ("segments", "types"), ("mask",)])
def test_embed_layer_normalization_gives_the_same(left_out: tuple[str, ...]) -> None:
    ids = np.random.default_rng(0).integers(0, 10, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    inputs = {"ids": ids, "segments": ids % 2, "words": numbers(10, 8), "positions": numbers(12, 8)}
    inputs |= {"types": numbers(2, 8), "gamma": numbers(8), "beta": numbers(8, seed=1), "mask": mask, "order": ids + 1}
    operands = ["" if name in left_out else name for name in inputs]
    given = {name: array for name, array in inputs.items() if name not in left_out}
    assert_decomposes("EmbedLayerNormalization", given, ("y", "lengths", "sum"), operands=operands)


@pytest.mark.parametrize("is_last", [0, 1])
def test_group_norm_is_that_of_torch(is_last: int) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[export]'")
    x, gamma, beta = numbers(2, 8, 4, 4), numbers(8), numbers(8, seed=1)
    norm = torch.nn.functional.group_norm(*(torch.tensor(a) for a in (x,)), 2, torch.tensor(gamma), torch.tensor(beta))
    want = torch.nn.functional.silu(norm).numpy()
    inputs = {"x": x.transpose(0, 2, 3, 1).copy() if is_last else x, "gamma": gamma, "beta": beta}
    model = node_model("GroupNorm", inputs, groups=2, activation=1, channels_last=is_last)
    (got,) = run(decomposed(model), inputs)
    np.testing.assert_allclose(got.transpose(0, 3, 1, 2) if is_last else got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("opset", [17, 21])
@pytest.mark.parametrize("op", ["Gelu", "BiasGelu", "FastGelu", "QuickGelu"])
def test_activation_gives_the_same(op: str, opset: int, dtype: Any) -> None:
    inputs = {"x": numbers(2, 5, 8, dtype=dtype)}
    inputs |= {"bias": numbers(8, dtype=dtype)} if op in ("BiasGelu", "FastGelu") else {}
    assert_decomposes(op, inputs, opset=opset)


def test_sums_without_a_kernel_of_onnxruntime_are_those_of_numpy() -> None:
    inputs = {"x": numbers(2, 5, 8), "bias": numbers(8), "skip": numbers(2, 5, 8, seed=1)}
    (got,) = run(decomposed(node_model("BiasAdd", inputs)), inputs)
    np.testing.assert_allclose(got, inputs["x"] + inputs["bias"] + inputs["skip"], rtol=1e-6)
    del inputs["skip"]
    (got,) = run(decomposed(node_model("BiasSplitGelu", inputs)), inputs)
    total = inputs["x"] + inputs["bias"]
    gelu = run(node_model("Gelu", {"x": total[..., 4:]}), {"x": total[..., 4:].copy()})[0]
    np.testing.assert_allclose(got, total[..., :4] * gelu, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("a", "b", "attributes"),
    [
        ((2, 5, 8), (2, 8, 3), {"alpha": 0.5}),
        ((2, 8, 5), (2, 3, 8), {"transA": 1, "transB": 1}),
        ((5, 2, 8), (8, 2, 3), {"transBatchA": 1, "transBatchB": 1}),
        ((8, 2, 5), (3, 2, 8), {"transBatchA": 1, "transBatchB": 1, "transA": 1, "transB": 1}),
    ],
)
def test_fused_matmul_gives_the_same(a: tuple[int, ...], b: tuple[int, ...], attributes: dict[str, Any]) -> None:
    assert_decomposes("FusedMatMul", {"a": numbers(*a), "b": numbers(*b)}, **attributes)


def test_fused_gemm_gives_the_same() -> None:
    inputs = {"a": numbers(5, 8), "b": numbers(3, 8), "c": numbers(3)}
    activation = {"activation": "LeakyRelu", "activation_alpha": 0.2}
    assert_decomposes("FusedGemm", inputs, transB=1, alpha=0.5, beta=2.0, **activation)


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [("Relu", None), ("Tanh", None), ("LeakyRelu", [0.1]), ("Clip", [-0.5, 0.5]), ("HardSigmoid", [0.3, 0.4])],
)
def test_fused_conv_gives_the_same(activation: str, parameters: list[float] | None) -> None:
    inputs = {"x": numbers(1, 3, 6, 6), "w": numbers(4, 3, 3, 3), "b": numbers(4)}
    inputs |= {"z": numbers(1, 4, 6, 6)} if activation == "Relu" else {}
    given = {"activation_params": parameters} if parameters else {}
    assert_decomposes("FusedConv", inputs, activation=activation, pads=[1, 1, 1, 1], **given)


EQUATIONS = [
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("bhqk,bkhd->bqhd", (2, 3, 4, 6), (2, 6, 3, 5)),
    ("...ij,...jk->...ik", (2, 7, 3, 4), (7, 4, 5)),
    ("...i,i->...", (2, 3, 4), (4,)),
    ("ij,kl->ijkl", (2, 3), (4, 5)),
    ("i,i", (4,), (4,)),
    ("ij->ji", (3, 4)),
    ("ijk->j", (3, 4, 5)),
    ("ii->i", (4, 4)),
    ("iij->j", (4, 4, 3)),
    ("ba,ac,cd", (2, 3), (3, 4), (4, 5)),
    ("bij,b->ij", (2, 3, 4), (2,)),
    ("bijk,blmk->bijlm", (2, 3, 4, 5), (2, 6, 7, 5)),
    ("bnijk,bnijl->bkl", (2, 2, 3, 4, 5), (2, 2, 3, 4, 6)),
]


@pytest.mark.parametrize(("equation", "dims"), [(equation, dims) for equation, *dims in EQUATIONS])
def test_einsum_is_that_of_numpy(equation: str, dims: list[tuple[int, ...]]) -> None:
    inputs = {f"x{index}": numbers(*d, seed=index) for index, d in enumerate(dims)}
    (got,) = run(decomposed(node_model("Einsum", inputs, domain="", equation=equation)), inputs)
    want = np.einsum(equation, *(array.astype(np.float64) for array in inputs.values()))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
