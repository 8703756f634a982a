"""AMD's libraries, played by a fake HIP (fake_hip.c) and the host's hipDNN (fake_hipdnn.c)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import installed
from hipdnn_mlir_runtime.cli import amd

HEADERS = Path(__file__).parents[2] / "third_party" / "hip"


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both libraries under AMD's names."""
    folder = tmp_path_factory.mktemp("rocm")
    build_library("fake_hip.c", folder / "libamdhip64.so")
    build_library("fake_hipdnn.c", folder / "libhipdnn_backend.so")
    return folder


@pytest.fixture(scope="session")
def early_libraries(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a hipDNN of 2025."""
    folder = tmp_path_factory.mktemp("rocm_early")
    build_library("fake_early_hipdnn.c", folder / "libhipdnn_backend.so")
    (folder / "libamdhip64.so").symlink_to(libraries / "libamdhip64.so")
    return folder


@pytest.fixture(scope="session")
def libraries_with_plugins(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a hipDNN that loads plugins."""
    folder = tmp_path_factory.mktemp("rocm_with_plugins")
    build_library("fake_plugins.c", folder / "libhipdnn_backend.so")
    (folder / "libamdhip64.so").symlink_to(libraries / "libamdhip64.so")
    return folder


@pytest.fixture(scope="session")
def faulty_libraries(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with an engine that may be broken, and the providers of hipDNN's default build beside it."""
    folder = tmp_path_factory.mktemp("rocm_faulty")
    build_library("fake_faulty_hipdnn.c", folder / "libhipdnn_backend.so")
    (folder / "libamdhip64.so").symlink_to(libraries / "libamdhip64.so")
    plugins = folder / "hipdnn_plugins" / "engines"
    plugins.mkdir(parents=True)
    for provider in amd.PROVIDERS:
        build_library("fake_provider.c", plugins / provider.file)
    return folder


def _host() -> Path:
    return installed.library("host")


def build_library(name: str, library: Path) -> None:
    """Compile a file of this folder into a library in front of the host's."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler cc for the fake libraries")
    host = _host()
    options = [
        "-shared",
        "-fPIC",
        "-Wall",
        "-Werror",
        f"-I{HEADERS}",
        "-Wl,--no-as-needed",
        f"-Wl,-rpath,{host.parent}",
    ]
    source = Path(__file__).with_name(name)
    subprocess.run([compiler, *options, str(source), str(host), "-o", str(library)], check=True)
