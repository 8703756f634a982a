"""MatMulNBits in compiled programs, against ONNX Runtime's CPU provider."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import hipdnn_mlir
from decompositions.node_models import CONTRIB, Arrays, node_model, run

ENGINE = "HOST_BLOCK_MATMUL_ENGINE"
N = 21
_EXACT = 2e-5
"""Of the largest result: both sides sum in float32, in their own order."""
_ROUNDED = 1e-2
"""Root mean square of the difference over that of the result: activations are rounded once, by 1 / 127 of the greatest in a block."""
bits_4_and_8 = pytest.mark.parametrize("bits", [4, 8])


def packed(
    bits: int, block: int, k: int, *, zeros: str = "", dims: tuple[int, ...] = (3,), dtype: Any = np.float32
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Inputs and attributes of a product with weights (N, blocks, bytes); zero points are none, of uint8 or of the type of a."""
    rng = np.random.default_rng([bits, block, k, *dims])
    blocks = -(-k // block)
    inputs = {
        "a": rng.standard_normal((*dims, k)).astype(dtype),
        "b": rng.integers(0, 256, (N, blocks, block * bits // 8)).astype(np.uint8),
        "scales": (rng.random((N, blocks)) / 16 + 1 / 64).astype(dtype),
    }
    if zeros == "uint8":
        inputs["zeros"] = rng.integers(0, 256, (N, -(-blocks * bits // 8))).astype(np.uint8)
    elif zeros:
        inputs["zeros"] = rng.uniform(0, 2**bits, (N, blocks)).astype(dtype)
    return inputs, {"bits": bits, "block_size": block, "K": k, "N": N}


def product_model(inputs: Arrays, attributes: dict[str, Any], *, fed: tuple[str, ...] = ("a",)) -> onnx.ModelProto:
    """A model of one product; all but the inputs named are constants."""
    operands = ["a", "b", "scales", "zeros", "", "bias"]
    while operands[-1] not in inputs:
        operands.pop()
    operands = [name if name in inputs else "" for name in operands]
    constants = [name for name in inputs if name not in fed]
    return node_model("MatMulNBits", inputs, operands=operands, constants=constants, **attributes)


def compiled(model: onnx.ModelProto, inputs: Arrays) -> tuple[np.ndarray, list[str]]:
    """The first result of the compiled model, and the engine of each step."""
    program = hipdnn_mlir.compile(model)
    session = program.session()
    (got,) = session.run(None, {port.name: inputs[port.name] for port in session.inputs})
    made = program.model.to_dict()
    engines = [executable["engine"] for executable in made["executables"]]
    return got, [engines[step["executable"]] if "executable" in step else step["kind"] for step in made["steps"]]


def assert_near(got: np.ndarray, want: np.ndarray, tolerance: float = _EXACT) -> None:
    """The largest difference, in parts of the largest result."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    wide, expected = got.astype(np.float64), want.astype(np.float64)
    assert np.abs(wide - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize(("bits", "zeros"), [(4, ""), (4, "uint8"), (4, "float"), (8, ""), (8, "uint8")])
@pytest.mark.parametrize(("k", "block"), [(64, 32), (40, 16), (96, 16), (256, 128), (200, 128)])
def test_product_is_that_of_onnx_runtime(bits: int, zeros: str, k: int, block: int) -> None:
    inputs, attributes = packed(bits, block, k, zeros=zeros)
    model = product_model(inputs, attributes)
    got, engines = compiled(model, inputs)
    (want,) = run(model, inputs)
    assert_near(got, want)
    assert ENGINE in engines


@bits_4_and_8
@pytest.mark.parametrize("zeros", ["", "uint8"])
def test_weights_need_not_be_constants(bits: int, zeros: str) -> None:
    inputs, attributes = packed(bits, 32, 96, zeros=zeros)
    model = product_model(inputs, attributes, fed=tuple(inputs))
    got, engines = compiled(model, inputs)
    assert_near(got, run(model, inputs)[0])
    assert ENGINE in engines


@pytest.mark.parametrize(("bits", "zeros"), [(4, ""), (4, "uint8"), (8, "")])
def test_program_is_one_step_when_numbers_less_zero_points_have_8_bits(bits: int, zeros: str) -> None:
    inputs, attributes = packed(bits, 32, 64, zeros=zeros, dims=(2, 5))
    inputs["bias"] = np.random.default_rng(0).standard_normal(N).astype(np.float32)
    model = product_model(inputs, attributes)
    got, engines = compiled(model, inputs)
    assert_near(got, run(model, inputs)[0])
    assert engines == [ENGINE]


@pytest.mark.parametrize("dims", [(1,), (2, 5), (2, 1, 7)])
@pytest.mark.parametrize("zeros", ["", "float"])
def test_left_operand_may_have_batches(dims: tuple[int, ...], zeros: str) -> None:
    inputs, attributes = packed(4, 16, 40, zeros=zeros, dims=dims)
    model = product_model(inputs, attributes)
    assert_near(compiled(model, inputs)[0], run(model, inputs)[0])


@bits_4_and_8
@pytest.mark.parametrize("zeros", ["", "uint8"])
def test_activations_are_rounded_to_8_bits_when_the_accuracy_level_is_4(bits: int, zeros: str) -> None:
    inputs, attributes = packed(bits, 32, 256, zeros=zeros, dims=(13,))
    exact = run(product_model(inputs, attributes), inputs)[0].astype(np.float64)
    got, engines = compiled(product_model(inputs, attributes | {"accuracy_level": 4}), inputs)
    difference = np.sqrt(np.mean((got - exact) ** 2) / np.mean(exact**2))
    assert _ROUNDED / 10 < difference < _ROUNDED
    assert ENGINE in engines


@bits_4_and_8
@pytest.mark.parametrize("zeros", ["", "uint8"])
def test_operands_may_be_of_16_bits(bits: int, zeros: str) -> None:
    inputs, attributes = packed(bits, 32, 64, zeros=zeros, dtype=np.float16)
    wide = {name: array.astype(np.float32) if array.dtype == np.float16 else array for name, array in inputs.items()}
    got, engines = compiled(product_model(inputs, attributes), inputs)
    want = run(product_model(wide, attributes), wide)[0]
    assert_near(got, want.astype(np.float16), 2.0**-10)
    assert ENGINE in engines


@bits_4_and_8
def test_product_is_written_out_when_no_engine_has_the_blocks(bits: int) -> None:
    rng = np.random.default_rng(0)
    k, block, blocks = 30, 12, 3
    numbers = rng.integers(-(1 << (bits - 1)), 1 << (bits - 1), (N, blocks * block))
    stored = (
        numbers.astype(np.int8) if bits == 8 else ((numbers[:, 1::2] & 15) << 4 | numbers[:, ::2] & 15).astype(np.uint8)
    )
    scales = rng.random((N, blocks)).astype(np.float32)
    inputs = {"a": rng.standard_normal((2, 3, k)).astype(np.float32), "b": stored, "scales": scales}
    node = helper.make_node("BlockScaleMatMul", [*inputs], ["y"], domain="hipdnn", bits=bits, block_size=block)
    weights = [onnx.numpy_helper.from_array(inputs[name], name) for name in ("b", "scales")]
    fed = [helper.make_tensor_value_info("a", TensorProto.FLOAT, inputs["a"].shape)]
    graph = helper.make_graph([node], "written_out", fed, [onnx.ValueInfoProto(name="y")], weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("hipdnn", 1), helper.make_opsetid(CONTRIB, 1)]
    got, engines = compiled(helper.make_model(graph, opset_imports=opsets, ir_version=10), inputs)
    wide = (numbers * np.repeat(scales.astype(np.float64), block, 1))[:, :k]
    assert_near(got, (inputs["a"].astype(np.float64) @ wide.T).astype(np.float32))
    assert ENGINE not in engines


@bits_4_and_8
@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize(("dims", "blocks"), [((3,), 2), ((2, 5), 3)])
def test_rows_of_an_embedding_are_those_of_onnx_runtime(
    bits: int, has_zeros: bool, dims: tuple[int, ...], blocks: int
) -> None:
    rng = np.random.default_rng(3)
    rows, block = 9, 16
    inputs = {
        "data": rng.integers(0, 256, (rows, blocks * block * bits // 8), np.uint8),
        "indices": rng.integers(0, rows, dims),
        "scales": rng.uniform(0.01, 0.2, (rows, blocks)).astype(np.float32),
    }
    if has_zeros:
        inputs["zeros"] = rng.integers(0, 256, (rows, -(-blocks * bits // 8)), np.uint8)
    model = node_model("GatherBlockQuantized", inputs, bits=bits, block_size=block, gather_axis=0, quantize_axis=1)
    for opset in (17, 21):  # bitwise operators came in 18
        next(entry for entry in model.opset_import if not entry.domain).version = opset
        got, _ = compiled(model, inputs)
        assert_near(got, run(model, inputs)[0])


@pytest.mark.parametrize("quant_type", [0, 1])
@pytest.mark.parametrize(("k", "n", "block"), [(64, 21, 16), (40, 6, 64), (32, 3, 128)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_named_numbers_are_those_of_onnx_runtime(quant_type: int, k: int, n: int, block: int, dtype: Any) -> None:
    rng = np.random.default_rng([quant_type, k, n, block])
    inputs = {
        "a": rng.standard_normal((2, 3, k)).astype(dtype),
        "b": rng.integers(0, 256, k * n // 2).astype(np.uint8),
        "scales": (rng.random(-(-k * n // block)) + 0.1).astype(dtype),
    }
    stated = {"K": k, "N": n, "block_size": block, "quant_type": quant_type}
    model = node_model("MatMulBnb4", inputs, constants=("b", "scales"), **stated)
    got, _ = compiled(model, inputs)
    assert_near(got, run(model, inputs)[0], _EXACT if dtype == np.float32 else 4e-3)
