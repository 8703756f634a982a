"""Linking by ROCm's code object manager, played by a library with its functions (fake_comgr.c), whose numbers are those of two versions."""

from __future__ import annotations

import ctypes
import logging
import shutil
import subprocess
from collections.abc import Callable, Iterator
from ctypes.util import find_library
from pathlib import Path

import pytest

from hipdnn_mlir.codegen import link_code_object
from hipdnn_mlir.codegen.core import comgr, link
from hipdnn_mlir.errors import ModelError, PassError

CODE = b"\x7fELF object \0 with zeros \0"


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Return a folder of ROCm with the library of a version."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler cc for the fake library")

    def make(major: int) -> Path:
        root = tmp_path_factory.mktemp("rocm")
        library = root / "lib" / "libamd_comgr.so"
        library.parent.mkdir()
        source = Path(__file__).with_name("fake_comgr.c")
        options = ["-shared", "-fPIC", "-Wall", "-Werror", f"-DMAJOR={major}"]
        subprocess.run([compiler, *options, str(source), "-o", str(library)], check=True)
        return root

    return make


@pytest.fixture
def no_linker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(link, "find_linker", lambda: None)
    comgr.find_comgr.cache_clear()
    yield
    comgr.find_comgr.cache_clear()


@pytest.mark.parametrize("major", [2, 3])
@pytest.mark.usefixtures("no_linker")
def test_an_object_is_linked_and_everything_given_back(
    major: int, build: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = build(major)
    monkeypatch.setenv("ROCM_PATH", str(root))
    for _ in range(3):
        assert link_code_object(CODE, "gfx942") == b"linked:" + CODE
    with pytest.raises(PassError) as raised:
        link_code_object(b"broken", "gfx1100")
    assert "amd_comgr_do_action: ERROR (1)" in str(raised.value)
    assert raised.value.detail == "linking for amdgcn-amd-amdhsa--gfx1100\n"
    with pytest.raises(PassError, match="made 0 code objects"):
        link_code_object(b"", "gfx942")
    with pytest.raises(PassError, match=r"amd_comgr_action_info_set_isa_name: INVALID_ARGUMENT \(2\)"):
        link_code_object(CODE, "sm_90")
    assert ctypes.CDLL(str(root / "lib" / "libamd_comgr.so")).fake_comgr_alive() == 0


@pytest.mark.skipif(find_library("amd_comgr") is not None, reason="needs a machine without ROCm")
@pytest.mark.usefixtures("no_linker")
def test_a_version_with_other_numbers_is_not_used(
    build: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ROCM_PATH", str(build(4)))
    with caplog.at_level(logging.WARNING), pytest.raises(ModelError, match=r"its linker or libamd_comgr\.so"):
        link_code_object(CODE, "gfx942")
    (record,) = caplog.records
    assert "version 4.1, known are [2, 3]" in record.message


@pytest.mark.skipif(find_library("amd_comgr") is not None, reason="needs a machine without ROCm")
@pytest.mark.usefixtures("no_linker")
def test_a_library_that_lacks_a_function_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler cc for the fake library")
    (tmp_path / "lib").mkdir()
    source = tmp_path / "old.c"
    source.write_text("void amd_comgr_get_version(unsigned long* a, unsigned long* b) { *a = 2; *b = 0; }\n")
    library = tmp_path / "lib" / "libamd_comgr.so.2"
    subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    assert comgr.find_comgr() is None
    assert "amd_comgr_create_data" in caplog.text


def test_a_linker_comes_first(build: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    if link.find_linker() is None:
        pytest.skip("no ld.lld of LLVM 15 or newer: pip install '.[gpu-amd]'")
    monkeypatch.setenv("ROCM_PATH", str(build(3)))
    with pytest.raises(PassError, match="failed"):
        link_code_object(CODE, "gfx942")
