"""Floats of 8 bits on GPUs: products for the library that has them, kernels around, as ONNX Runtime's CPU provider computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from gpu.programs import compile_for_emulator, run
from test_float8 import E4M3, E5M2, model_of, numbers, product, reference, values


@pytest.mark.parametrize("kind", [E4M3, E5M2], ids=str)
def test_generated_conversions(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, to = numbers(), helper.np_dtype_to_tensor_dtype(kind)
    cast = helper.make_node("Cast", ["x"], ["y"], to=to, saturate=0)
    program, modules = compile_for_emulator(
        model_of([cast], (np.float32, x.shape), (kind, x.shape)), monkeypatch, target="sm_90"
    )
    (y,) = run(program, {"x": x}, modules)
    np.testing.assert_array_equal(y.astype(np.float32), x.astype(kind).astype(np.float32))
    codes, back = np.arange(256, dtype=np.uint8).view(kind), helper.make_node("Cast", ["x"], ["y"], to=1)
    program, modules = compile_for_emulator(
        model_of([back], (kind, [256]), (np.float32, [256])), monkeypatch, target="gfx942"
    )
    (y,) = run(program, {"x": codes}, modules)
    np.testing.assert_array_equal(y, codes.astype(np.float32))


@pytest.mark.parametrize(
    ("target", "precision", "graphs"),
    [
        ("sm_90", "model", ["matmul + mul"]),
        ("sm_90", "f16", ["matmul + mul + add"]),
        ("sm_80", "f16", ["matmul + add"]),
        ("gfx942", "f16", ["matmul + add"]),
    ],
)
def test_linear_layer(target: str, precision: str, graphs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = product(160), values(160)
    program, modules = compile_for_emulator(model, monkeypatch, target=target, precision=precision)
    (y,) = run(program, {"x": x}, modules)
    wanted = reference(model, x)
    rounding = 5e-3 if precision == "f16" else 1e-5
    np.testing.assert_allclose(y, wanted, rtol=rounding, atol=rounding * np.abs(wanted).max())
    assert [executable.summary for executable in program.model.executables] == graphs
    (weights,) = (array for array in program.tensors.values() if array.ndim == 2)
    assert weights.itemsize == (1 if target == "sm_90" else 2)


@pytest.mark.parametrize("kinds", [(E5M2, E5M2), (E5M2, E4M3)], ids=str)
def test_library_multiplies_one_operand_of_e4m3(kinds: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program, _ = compile_for_emulator(product(160, kinds=kinds), monkeypatch, target="sm_90", precision="f16")
    names = [executable.summary for executable in program.model.executables]
    assert names == (["matmul + add"] if kinds[1] == E5M2 else ["matmul + mul + add"])


def test_rounding_in_the_middle_of_a_kernel_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    node, x = helper.make_node, values(8)
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        node("Neg", ["d"], ["y"]),
    ]
    constants = {"s": np.float32(0.25), "z": np.zeros((), E4M3)}
    model = model_of(nodes, (np.float32, x.shape), (np.float32, x.shape), constants)
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90")
    assert len(modules) == 1
    (y,) = run(program, {"x": x}, modules)
    np.testing.assert_array_equal(y, reference(model, x))
