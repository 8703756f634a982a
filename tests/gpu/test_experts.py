"""Mixtures of experts in programs for GPUs, which have no kernel for them: kernels in the emulator, graphs on the host's library."""

from __future__ import annotations

import pytest

from decompositions.node_models import run as on_cpu
from decompositions.test_experts import INNER, SWIGLU, assert_near, code_experts, float_experts, model_of, routed
from gpu.programs import compile_for_emulator, run


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("op", ["MoE", "QMoE"])
def test_program_equals_onnx_runtime(rows: int, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = float_experts(2 * INNER) if op == "MoE" else code_experts(2 * INNER, 4, 16, zeros=False)
    inputs = routed((rows,)) | weights
    stated = {} if op == "MoE" else {"block_size": 16}
    model = model_of(op, inputs, k=2, normalize_routing_weights=1, **SWIGLU, **stated)
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90")
    (got,) = run(program, {name: inputs[name] for name in ("x", "router")}, modules)
    assert_near(got, on_cpu(model, inputs)[0])
