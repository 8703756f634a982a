"""Linked code objects: what AMD's loader and launcher read in them is what a program says."""

from __future__ import annotations

import base64
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import hipdnn_mlir
import models
from drawing import every
from gpu import code_object
from hipdnn_mlir.codegen import find_architecture, link_code_object
from hipdnn_mlir.codegen.core import link
from hipdnn_mlir.targets.table import AMD, TargetName
from hipdnn_mlir_runtime.errors import MissingToolError, PassError

pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
needs_linker = pytest.mark.skipif(
    link.find_linker() is None, reason="no ld.lld of LLVM 15 or newer: pip install '.[gpu-amd]'"
)
DESCRIPTOR_BYTES = 64
POINTER_BYTES = 8


@cache
def kernels(target: TargetName) -> list[dict[str, Any]]:
    """Code of a program with pools, softmax with shared memory, norms and casts, for an architecture."""
    made = (models.encoder(layers=1, s=16, d=32, heads=4, ffn=64), models.resnet())
    programs = [hipdnn_mlir.compile(model, target=target, precision="f16") for model in made]
    return [kernel.code for program in programs for kernel in program.model.kernels]


@needs_linker
@pytest.mark.parametrize("target", every(3, AMD))
def test_the_loader_finds_every_kernel(target: TargetName) -> None:
    assert len(kernels(target)) >= 8
    for code in kernels(target):
        assert code["encoding"] == "base64"
        found = code_object.read(base64.b64decode(code["image"]))
        assert (found.architecture, found.target) == (target, f"amdgcn-amd-amdhsa--{target}")
        assert [symbol.name for symbol in found.symbols if not symbol.is_defined] == []
        sizes = {symbol.name: symbol.bytes for symbol in found.symbols}
        assert sizes[f"{code['function']}.kd"] == DESCRIPTOR_BYTES
        assert sizes[code["function"]] > 0


@needs_linker
@pytest.mark.parametrize("target", every(3, AMD))
def test_the_metadata_is_how_the_runtime_launches(target: TargetName) -> None:
    architecture = find_architecture(target)
    shared = []
    for code in kernels(target):
        (kernel,) = code_object.read(base64.b64decode(code["image"])).kernels
        assert (kernel[".name"], kernel[".symbol"]) == (code["function"], f"{code['function']}.kd")
        assert kernel[".wavefront_size"] == architecture.wave_size
        assert kernel[".reqd_workgroup_size"] == list(code["block"])
        assert kernel[".max_flat_workgroup_size"] >= code["block"][0]
        passed = [a for a in kernel.get(".args", []) if not a[".value_kind"].startswith("hidden_")]
        assert [(a[".value_kind"], a[".size"], a[".offset"]) for a in passed] == [
            ("global_buffer", POINTER_BYTES, POINTER_BYTES * i) for i in range(len(code["arguments"]))
        ]
        assert kernel[".kernarg_segment_size"] >= POINTER_BYTES * len(code["arguments"])
        assert kernel[".private_segment_fixed_size"] == 0  # no registers spilled to memory
        shared.append(kernel[".group_segment_fixed_size"])
    assert max(shared) <= architecture.shared_bytes


def test_linking_without_a_linker_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "find_linker", lambda: None)
    with pytest.raises(MissingToolError, match=r"ld\.lld, which was not found.*pip install ziglang"):
        link_code_object(b"")


@needs_linker
def test_what_the_linker_says_is_shown() -> None:
    with pytest.raises(PassError) as caught:
        link_code_object(b"no object")
    assert "kernel.o" in str(caught.value.detail)


def put_linker(folder: Path, name: str, version: str) -> Path:
    """A linker that says its version."""
    folder.mkdir(parents=True, exist_ok=True)
    linker = folder / name
    linker.write_text(f"#!/bin/sh\necho '{version}'\n")
    linker.chmod(0o755)
    return linker


def test_rocms_linker_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rocm = put_linker(tmp_path / "rocm" / "llvm" / "bin", "ld.lld", "AMD LLD 19.0.0")
    put_linker(tmp_path / "bin", "ld.lld", "LLD 18.1.3")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert link.find_linker() == [str(rocm)]


@pytest.mark.skipif(
    Path("/opt/rocm/llvm/bin/ld.lld").exists(), reason="needs a machine without ROCm's linker, which would be taken"
)
def test_a_linker_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_linker(tmp_path, "ld.lld", "Debian LLD 14.0.6 (compatible with GNU linkers)")
    put_linker(tmp_path, "ld.lld-14", "Debian LLD 14.0.6")
    newest = put_linker(tmp_path, "ld.lld-19", "Debian LLD 19.1.4")
    put_linker(tmp_path, "ld.lld-16", "Debian LLD 16.0.6")
    monkeypatch.delenv("ROCM_PATH", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    assert link.find_linker() == [str(newest)]


@pytest.mark.skipif(
    Path("/opt/rocm/llvm/bin/ld.lld").exists(), reason="needs a machine without ROCm's linker, which would be taken"
)
def test_ziglangs_linker_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ziglang", reason="ziglang is not installed: pip install '.[gpu-amd]'")
    monkeypatch.delenv("ROCM_PATH", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    linker = link.find_linker()
    assert linker is not None
    assert linker[1:] == ["ld.lld"]
    assert Path(linker[0]).name == "zig"
