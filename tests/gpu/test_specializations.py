"""Models with dynamic dimensions for GPUs give ONNX Runtime's values at each bucket and between, kernels in the emulator."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
import models
from drawing import every
from gpu.programs import compile_for_emulator, run
from hipdnn_mlir import Program
from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.session.padding import cut, padded

BUCKETS = [1, 3, 4]
SIZES = (1, 2, 3, 4)


def encoder() -> onnx.ModelProto:
    return models.encoder(layers=1, s=6, d=16, heads=2, ffn=24)


CASES = {
    "perceptron": (models.mlp, {"x": ("n", 64)}),
    "classifier": (lambda: models.resnet(size=8, depths=(1,)), {"image": ("n", 3, 8, 8)}),
    "encoder": (encoder, {"hidden": ("n", 6, 16), "mask": ("n", 1, 1, 6)}),
}


def opened(model: onnx.ModelProto, shapes: dict[str, tuple[object, ...]]) -> onnx.ModelProto:
    """The model for ONNX Runtime, with the same dims open."""
    for port in model.graph.input:
        for dim, size in zip(port.type.tensor_type.shape.dim, shapes[port.name], strict=True):
            if isinstance(size, str):
                dim.dim_param = size
    for port in model.graph.output:
        port.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    return model


def at(program: Program, size: int) -> Program:
    """What a session would take for a size."""
    made = next(made for made in program.model.specializations if made.sizes[0] >= size)
    return Program(made.program, {tensor: program.weights[tensor] for tensor in made.program.stored_tensors})


@pytest.mark.parametrize(("name", "on"), every(3, CASES, [("sm_90", 32), ("gfx942", 64)]))
def test_program_equals_onnx_runtime(name: str, on: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    target, wave = on
    make, shapes = CASES[name]
    program, modules = compile_for_emulator(make(), monkeypatch, target=target, shapes=shapes, buckets={"n": BUCKETS})
    assert [made.sizes for made in program.model.specializations] == [[size] for size in BUCKETS]
    assert program.model.exact == [""]
    want = ort.InferenceSession(opened(make(), shapes).SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(2)
    for size in SIZES:
        feeds = {
            port.name: rng.standard_normal([size if dim == "n" else dim for dim in shapes[port.name]]).astype(
                np.float32
            )
            for port in want.get_inputs()
        }
        chosen = at(program, size)
        larger = {port.name: padded(feeds[port.name], port.dims, port.name) for port in chosen.model.inputs}
        outputs = run(chosen, larger, modules, wave=wave)
        for got, expected in zip(outputs, want.run(None, feeds), strict=True):
            np.testing.assert_allclose(cut(got, expected.shape), expected, rtol=2e-4, atol=2e-4)


def test_weights_are_there_once_for_all_buckets() -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
    make, shapes = CASES["encoder"]
    program = hipdnn_mlir.compile(make(), target="sm_90", shapes=shapes, buckets={"n": BUCKETS})
    one = hipdnn_mlir.compile(make(), target="sm_90", shapes={"hidden": (1, 6, 16), "mask": (1, 1, 1, 6)})
    assert sum(w.nbytes for w in program.weights.values()) == sum(w.nbytes for w in one.weights.values())


def test_a_size_without_buckets_is_named() -> None:
    with pytest.raises(
        ModelError, match=r"no buckets for 's': .*add --bucket s=1,8,32, or make it static with --shape s=1"
    ):
        hipdnn_mlir.compile(
            encoder(),
            target="sm_90",
            shapes={"hidden": ("n", "s", 16), "mask": ("n", 1, 1, "s")},
            buckets={"n": BUCKETS},
        )
