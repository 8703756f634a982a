"""Programs for AMD's GPUs on the port `hip`, with AMD's libraries played by a fake HIP (fake_hip.c) and the host's hipDNN."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
import models
from hipdnn_mlir.codegen.core import link
from hipdnn_mlir_runtime.errors import DeviceError

pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
pytestmark = [
    pytest.mark.skipif(link.find_linker() is None, reason="no ld.lld of LLVM 15 or newer: pip install '.[gpu-amd]'"),
    pytest.mark.skipif(find_library("amdhip64") is not None, reason="needs a machine without AMD's HIP"),
]
MANY = 8
"""Rows whose matmuls are the libraries': the fake HIP runs no code."""
RUN = """
import sys
import numpy as np
import hipdnn_mlir
program, feeds, results = sys.argv[1:]
outputs = hipdnn_mlir.load(program).run(None, dict(np.load(feeds)))
np.savez(results, *outputs)
"""


def run_on(
    device: str, program: hipdnn_mlir.Program, feeds: dict[str, Any], libraries: Path, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Load and run a program in a process that finds the fake, whose device has the given name."""
    program.save(folder / "model.hipdnn")
    np.savez(folder / "feeds.npz", **feeds)
    counts = [len(kernel.code["arguments"]) for kernel in program.model.kernels]
    variables = {
        "LD_LIBRARY_PATH": str(libraries),
        "FAKE_GCN_ARCH": device,
        "FAKE_HIP_RECORD": str(folder),
        "FAKE_HIP_ARGUMENTS": ",".join(map(str, counts)),
    }
    command = [
        sys.executable,
        "-P",
        "-c",
        RUN,
        *(str(folder / name) for name in ("model.hipdnn", "feeds.npz", "results.npz")),
    ]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)


def feeds_of(model: onnx.ModelProto) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    dims = {port.name: [d.dim_value for d in port.type.tensor_type.shape.dim] for port in model.graph.input}
    return {name: rng.standard_normal(sizes).astype(np.float32) for name, sizes in dims.items()}


def test_graphs_give_onnx_runtimes_values_when_the_device_is_the_programs(libraries: Path, tmp_path: Path) -> None:
    model = models.mlp(MANY)
    program = hipdnn_mlir.compile(model, target="gfx942")
    feeds = feeds_of(model)
    done = run_on("gfx942:sramecc+:xnack-", program, feeds, libraries, tmp_path)
    assert done.returncode == 0, done.stderr
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for got, want in zip(np.load(tmp_path / "results.npz").values(), reference.run(None, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_parts_of_tensors_have_plans(libraries: Path, tmp_path: Path) -> None:
    model = models.slices()
    program = hipdnn_mlir.compile(model, target="gfx942")
    done = run_on("gfx942", program, feeds_of(model), libraries, tmp_path)
    assert done.returncode == 0, done.stderr


RUN_ALL = """
import sys
import numpy as np
import hipdnn_mlir
program, feeds, results = sys.argv[1:]
session = hipdnn_mlir.load(program)
session.prewarm()
outputs = {name: session.run(None, {"x": x})[0] for name, x in np.load(feeds).items()}
assert session.stats.specializations == 3
np.savez(results, **outputs)
"""


def test_sizes_between_buckets_are_padded_for_the_device(libraries: Path, tmp_path: Path) -> None:
    model = models.mlp(MANY)
    program = hipdnn_mlir.compile(model, target="gfx942", shapes={"x": ("n", 64)}, buckets={"n": [MANY, 16, 32]})
    assert not any(made.program.kernels for made in program.model.specializations)
    program.save(tmp_path / "model.hipdnn")
    rng = np.random.default_rng(0)
    feeds = {f"x{size}": rng.standard_normal((size, 64)).astype(np.float32) for size in (1, 5, 8, 9, 16, 30)}
    np.savez(tmp_path / "feeds.npz", **feeds)
    paths = [str(tmp_path / name) for name in ("model.hipdnn", "feeds.npz", "results.npz")]
    variables = {
        "LD_LIBRARY_PATH": str(libraries), "FAKE_GCN_ARCH": "gfx942", "FAKE_HIP_RECORD": str(tmp_path), "FAKE_HIP_ARGUMENTS": "",
    }  # fmt: skip
    command = [sys.executable, "-P", "-c", RUN_ALL, *paths]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    open_model = onnx.ModelProto()
    open_model.CopyFrom(model)
    for port in (*open_model.graph.input, *open_model.graph.output):
        port.type.tensor_type.shape.dim[0].dim_param = "n"
    reference = ort.InferenceSession(open_model.SerializeToString(), providers=["CPUExecutionProvider"])
    for name, got in np.load(tmp_path / "results.npz").items():
        np.testing.assert_allclose(got, reference.run(None, {"x": feeds[name]})[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", ["gfx90a:sramecc+:xnack-", "gfx942x", "gfx94", "gfx1100"])
def test_a_device_of_another_architecture_is_named(device: str, libraries: Path, tmp_path: Path) -> None:
    model = models.mlp()
    program = hipdnn_mlir.compile(model, target="gfx942")
    done = run_on(device, program, feeds_of(model), libraries, tmp_path)
    assert done.returncode != 0
    wanted = device.split(":", maxsplit=1)[0]
    assert (
        f"compiled for 'gfx942', port 'hip' runs '{wanted}'; compile the model again with --target {wanted}"
        in done.stderr
    )


def test_the_driver_gets_the_linked_code_and_its_launches(libraries: Path, tmp_path: Path) -> None:
    model = models.encoder(layers=1, s=16, d=32, heads=4, ffn=64)
    program = hipdnn_mlir.compile(model, target="gfx1100")
    done = run_on("gfx1100", program, feeds_of(model), libraries, tmp_path)
    assert done.returncode == 0, done.stderr
    kernels = program.model.kernels
    for number, kernel in enumerate(kernels):
        assert (tmp_path / f"module{number}").read_bytes() == base64.b64decode(kernel.code["image"])
    calls = [line.split(" ") for line in (tmp_path / "calls").read_text().splitlines()]
    steps = [step for step in json.loads(program.text)["steps"] if step["kind"] == "launch"]
    assert len(calls) == len(steps) > 3
    for (call, module, function, grid, block, shared, is_plain, *arguments), step in zip(calls, steps, strict=True):
        code = kernels[step["kernel"]].code
        assert (call, int(module), function) == ("launch", step["kernel"], code["function"])
        assert [list(map(int, sizes.split(","))) for sizes in (grid, block)] == [
            list(code["grid"]),
            list(code["block"]),
        ]
        assert (shared, is_plain) == ("0", "1")  # shared memory is part of the code, arguments are no buffer
        places = [(step["operands"][a]["buffer"], step["operands"][a]["offset"]) for a in code["arguments"]]
        addresses = [int(address, 16) for address in arguments]
        assert min(addresses) > 0
        assert len(set(addresses)) == len(set(places))


def test_a_machine_without_amds_libraries_is_told_so() -> None:
    program = hipdnn_mlir.compile(models.mlp(), target="gfx942")
    with pytest.raises(
        DeviceError, match=r"port 'hip': cannot open libamdhip64\.so.*install ROCm Core SDK 10.0 or newer with hipDNN"
    ):
        program.session()
