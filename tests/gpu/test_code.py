"""What a user meets: architectures, a missing llvmlite."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import onnx
import onnx.parser
import pytest

import hipdnn_mlir
import models
from gpu.emulated import describe
from hipdnn_mlir.codegen import ARCHITECTURES, find_architecture, generate
from hipdnn_mlir.codegen.core import lower
from hipdnn_mlir.codegen.core.assemble import Launch, module_of
from hipdnn_mlir.placement.place import place
from hipdnn_mlir_runtime.errors import MissingToolError, ModelError
from host_kernels.kernel_runs import TensorSpec

COPY = {"code": [["load", 0], ["store", 1, 0]]}


def copy_kernel(architecture: str) -> object:
    x = np.zeros((64,), np.float32)
    return generate(describe("elementwise", [x], [TensorSpec("f32", (64,))], COPY), find_architecture(architecture))


def test_unknown_architecture_lists_the_known() -> None:
    with pytest.raises(ModelError, match="unknown GPU architecture 'gfx90': expected one of gfx90a, gfx942"):
        find_architecture("gfx90")


def test_a_missing_llvmlite_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lower._llvm.cache_clear()
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setattr(lower, "find_linker", lambda: None)
    with pytest.raises(MissingToolError, match=r"llvmlite, which is not installed; pip install llvmlite$"):
        copy_kernel("sm_90")
    with pytest.raises(MissingToolError, match=r"llvmlite, which is not installed; pip install llvmlite ziglang$"):
        copy_kernel("gfx942")


def test_nothing_is_placed_when_the_code_generator_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2,4,4] x) => (float[2] y, float[2,4,4] z) { y = Det(x) z = Relu(x) }'
    model = onnx.parser.parse_model(text)
    assert [partition.nodes for partition in place(model, target="sm_90", mode="maximal").partitions] == [["Relu_1"]]
    lower._llvm.cache_clear()
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    with pytest.raises(MissingToolError, match="llvmlite"):  # a reject of Relu would be kept as if it were the target's
        place(model, target="sm_90", mode="maximal")


def test_equal_kernels_have_equal_code() -> None:
    for name in ARCHITECTURES:
        assert copy_kernel(name).code == copy_kernel(name).code


@pytest.mark.parametrize("name", [n for n, a in ARCHITECTURES.items() if a.vendor == "nvidia"])
def test_kernels_let_the_next_begin_and_wait_before_they_touch_memory(name: str) -> None:
    x = np.zeros((300, 700), np.float32)
    kernels = [copy_kernel(name)]
    found = describe("arg_reduce", [x], [TensorSpec("i64", (300, 1))], {"axis": 1, "mode": "max", "select_last": False})
    kernels.append(generate(found, find_architecture(name)))
    for kernel in kernels:
        body = kernel.code[kernel.code.index(".entry") :]
        if not ARCHITECTURES[name].waits_in_kernels:
            assert "griddepcontrol" not in kernel.code
            continue
        first = min(
            body.index(access) for access in ("ld.global", "st.global", "ld.shared", "st.shared") if access in body
        )
        assert body.index("griddepcontrol.launch_dependents") < body.index("griddepcontrol.wait") < first


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_a_program_says_which_code_waits_itself(target: str) -> None:
    program = hipdnn_mlir.compile(models.encoder(layers=1, s=16, d=32, heads=4, ffn=64), target=target, precision="f16")
    kernels = [kernel["code"] for kernel in json.loads(program.text)["kernels"]]
    assert kernels
    for code in kernels:
        assert code.get("waits", False) is ("griddepcontrol.wait" in code["image"]) is (target == "sm_90")


@pytest.mark.parametrize(("blocks", "threads", "room"), [(1, 1024, 1), (132, 256, 1), (133, 256, 2), (133, 512, None)])
def test_a_small_grid_may_use_all_registers(blocks: int, threads: int, room: int | None) -> None:
    architecture = find_architecture("sm_90")
    launch = Launch(lambda _: None, blocks, threads)
    code = str(lower.compile_module(module_of(launch, "k", 0, architecture), architecture))
    assert re.findall(r"\.minnctapersm (\d+)", code) == ([] if room is None else [str(room)])


@pytest.mark.parametrize(
    ("arch", "blocks", "threads", "waves"),
    [("gfx942", 1, 1024, 4), ("gfx942", 304, 256, 1), ("gfx942", 305, 256, 2), ("gfx942", 305, 512, None), ("gfx1100", 1, 256, None)],
)  # fmt: skip
def test_a_small_grid_of_amd_may_use_all_registers(arch: str, blocks: int, threads: int, waves: int | None) -> None:
    architecture = find_architecture(arch)
    text = lower._llvm_text(module_of(Launch(lambda _: None, blocks, threads), "k", 0, architecture), architecture)
    found = re.findall(r'"amdgpu-waves-per-eu"="(\d+),(\d+)"', text)
    assert found == ([] if waves is None else [(str(waves), str(waves))])


@pytest.mark.parametrize("name", [n for n, a in ARCHITECTURES.items() if a.code == "object"])
def test_an_object_says_how_it_is_launched(name: str) -> None:
    kernel = copy_kernel(name)
    for text in (
        b"amdhsa.kernels",
        b".kernarg_segment_size",
        f"amdgcn-amd-amdhsa--{name}".encode(),
        b".reqd_workgroup_size",
    ):
        assert text in kernel.code
