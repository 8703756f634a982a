"""A process with the provider on a GPU that is none: the host's library plays its libraries, the emulator runs its kernels.

``emulated_gpu.py PROVIDER MASKS`` prints JSON: logits of a decoder whose caches grow, by who owns them, or ``{"error": ...}``. A process of
its own, since ONNX Runtime keeps registrations.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from generation.growing import HEAD, decode, growing_model, mask_of
from gpu.emulator import run_in_any_order
from gpu.programs import compile_for_emulator
from hipdnn_mlir import Program
from hipdnn_mlir.program.file import write
from hipdnn_mlir_runtime.dtypes import BY_NAME

from .counting_port import read_counts
from .gpu_worker import EP_NAME

ROWS, HEADS = 16, 2
STEPS = [
    (1, 0, 4), (1, 4, 1), (1, 5, 1), (1, 6, 3), (1, 9, 1),
    (1, 5, 1), (1, 6, 2),  # another way from there
    (1, 0, 3), (1, 3, 1),  # another text
    (2, 0, 3), (2, 3, 1), (2, 4, 4), (2, 4, 1),  # two texts
    (1, 0, 4), (1, 4, 4), (1, 8, 4), (1, 12, 1), (1, 13, 1), (1, 14, 1), (1, 15, 1),  # to the last row
]  # fmt: skip
"""Batch, how many tokens are there already, how many are new."""
Launcher = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p))


class Kernels:
    """Runs launches in the emulator; `failures` has what it found wrong."""

    def __init__(self, program: Program, modules: list[Any]) -> None:
        self._modules = modules
        self._bytes = {code["code"]["image"]: _argument_bytes(code) for code in json.loads(program.text)["kernels"]}
        self.failures: list[str] = []

    def __call__(self, image: bytes, blocks: int, threads: int, parameters: Any) -> None:
        try:
            self._run(image.decode(), blocks, threads, parameters)
        except Exception as error:  # noqa: BLE001 - ctypes would write it to the terminal and go on
            self.failures.append(f"{type(error).__name__}: {error}")

    def _run(self, image: str, blocks: int, threads: int, parameters: Any) -> None:
        sizes = self._bytes[image]
        addresses = [ctypes.cast(parameters[i], ctypes.POINTER(ctypes.c_size_t))[0] for i in range(len(sizes))]
        longest: dict[int, int] = {}
        for address, size in zip(addresses, sizes, strict=True):
            longest[address] = max(size, longest.get(address, 0))
        # One array for one place, so that the emulator knows of results that lie in the memory of an operand.
        arrays = {
            address: np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8)
            for address, size in longest.items()
        }
        run_in_any_order([arrays[address] for address in addresses], blocks, threads, 32, self._modules[int(image)])


def _argument_bytes(kernel: dict[str, Any]) -> list[int]:
    def extent(tensor: dict[str, Any]) -> int:
        last = sum((dim - 1) * stride for dim, stride in zip(tensor["dims"], tensor["strides"], strict=True))
        return int((last + 1) * np.dtype(BY_NAME[tensor["dtype"]].numpy).itemsize)

    return [extent(kernel["tensors"][place]) for place in kernel["code"]["arguments"]]


def context_model(model: onnx.ModelProto, program: Program, folder: Path) -> Path:
    """Write the model as an EPContext node with a program beside it."""
    write(folder / "program.hipdnn", program.model, program.weights)
    node = helper.make_node(
        "EPContext",
        [value.name for value in model.graph.input],
        [value.name for value in model.graph.output],
        name="decoder",
        domain="com.microsoft",
        main_context=1,
        embed_mode=0,
        ep_cache_context="program.hipdnn",
        source=EP_NAME,
    )
    graph = helper.make_graph([node], "context", model.graph.input, model.graph.output)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), folder / "context.onnx")
    return folder / "context.onnx"


class Player:
    """Runs steps of texts on the provider, its caches in the device's memory.

    Args:
        provider: its library, beside that of the port, registered.
        context: the compiled model.
        kernels: what its launches run.
        owns_buffers: whether the caller binds one buffer as past and present, and not caches that grow.
    """

    def __init__(self, provider: Path, context: Path, kernels: Kernels, *, owns_buffers: bool) -> None:
        self._kernels = kernels
        gpu = [
            device for device in ort.get_ep_devices() if device.ep_name == EP_NAME and device.device.type.name == "GPU"
        ]
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.add_provider_for_devices(gpu, {"compiler": "none", "plan_cache": "none"})
        self.session = ort.InferenceSession(context, options)
        self.session.disable_fallback()
        self._provider, self.owns_buffers = provider, owns_buffers
        self._pasts = [port.name for port in self.session.get_inputs() if port.name.startswith("past")]
        self._caches: dict[tuple[int, int], dict[str, Any]] = {}
        self.counts: list[dict[str, int]] = []

    def caches(self, batch: int, length: int, rows: int = ROWS) -> dict[str, Any]:
        """The caches of the text so far; empty ones for another text."""
        key = (batch, rows if self.owns_buffers else length)
        if length == 0 or key not in self._caches:
            dims = (batch, HEADS, rows if self.owns_buffers else length, HEAD)
            self._caches[key] = {name: _on_device(np.zeros(dims, np.float32)) for name in self._pasts}
        return self._caches[key]

    def spoil(self) -> None:
        """Run a text whose caches are no numbers, which no other one may see."""
        dims = (1, HEADS, ROWS - 4, HEAD)
        self._caches[1, ROWS - 4] = {name: _on_device(np.full(dims, np.nan, np.float32)) for name in self._pasts}
        self.step(np.array([[3]]), ROWS - 4)
        self._caches.clear()
        self.counts.clear()

    def step(self, tokens: np.ndarray, length: int, rows: int = ROWS) -> np.ndarray:
        """Add tokens [batch, any] behind so many; return logits of the last one."""
        batch, new = tokens.shape
        total, caches = length + new, self.caches(batch, length, rows)
        binding = self.session.io_binding()
        for name, array in {"input_ids": tokens, **mask_of(self.session, batch, new, total, 0)}.items():
            binding.bind_ortvalue_input(name, _on_device(array))
        for name in self._pasts:
            binding.bind_ortvalue_input(name, caches[name])
        for port in self.session.get_outputs():
            past = port.name.replace("present", "past_key_values")
            if past in caches and self.owns_buffers:
                binding.bind_ortvalue_output(port.name, caches[past])
            else:
                binding.bind_output(port.name, "cuda", 0)
        before = read_counts(self._provider)
        self.session.run_with_iobinding(binding)
        self.counts.append(read_counts(self._provider).since(before))
        assert not self._kernels.failures, self._kernels.failures
        outputs = dict(zip((port.name for port in self.session.get_outputs()), binding.get_outputs(), strict=True))
        if not self.owns_buffers:
            found = {name: outputs[name.replace("past_key_values", "present")] for name in self._pasts}
            assert {value.shape()[2] for value in found.values()} == {total}
            self._caches[batch, total] = found
        logits = outputs["logits"].numpy()
        assert logits.shape[1] == new
        return logits[:, -1]


def _on_device(array: np.ndarray) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(array, "cuda", 0)


def play(player: Player, model: onnx.ModelProto) -> Any:
    """Logits of all steps, ours and those of ONNX Runtime's CPU provider for the whole text, and what each step copied."""
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    texts: dict[int, np.ndarray] = {}
    found, wanted = [], []
    if not player.owns_buffers:
        player.spoil()
    for batch, length, new in STEPS:
        tokens = rng.integers(0, 60, (batch, new))
        texts[batch] = np.concatenate([texts[batch][:, :length], tokens], axis=1) if length else tokens
        found.append(player.step(tokens, length).tolist())
        wanted.append(decode(reference, [texts[batch]])[0][-1].tolist())
    return {"found": found, "wanted": wanted, "counts": player.counts, "refused": _refused(player)}


def _refused(player: Player) -> list[str]:
    """What is said of a text that is too long, and of a buffer of a length that there is no program for."""
    told = []
    for length, rows in ((ROWS, ROWS), (4, ROWS - 5)):
        try:
            player.step(np.array([[3, 4]]), length, rows)
            told.append("")
        except Exception as error:  # noqa: BLE001 - ONNX Runtime's exceptions have no common class of their own
            told.append(str(error))
    return told


def _played(provider: Path, masks: str) -> Any:
    model = growing_model(masks, heads=HEADS)
    sizes: dict[str, Any] = {"buckets": {"b": [1, 2], "s": [1, 4], "p": [ROWS // 2, ROWS]}}
    program, modules = compile_for_emulator(model, pytest.MonkeyPatch(), target="sm_90", **sizes)
    kernels = Kernels(program, modules)
    launcher = Launcher(kernels)
    ctypes.CDLL(str(provider.with_name("libhipdnn_cuda.so"))).setLauncher(launcher)
    ort.register_execution_provider_library("hipdnn", str(provider))
    context = context_model(model, program, provider.parent)
    return {
        owner: play(Player(provider, context, kernels, owns_buffers=owner == "caller"), model)
        for owner in ("provider", "caller")
    }


def main(provider: str, masks: str) -> None:
    """Play the steps with a model's masks and either one's caches."""
    try:
        told = _played(Path(provider), masks)
    except Exception as error:  # noqa: BLE001 - the test reads it
        told = {"error": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
