"""AMD's libraries, played by a fake HIP (fake_hip.c) and the host's hipDNN."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import hipdnn_mlir

HEADERS = Path(__file__).parents[2] / "third_party" / "hip"


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both libraries under AMD's names."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler cc for the fake HIP")
    folder = tmp_path_factory.mktemp("rocm")
    host = Path(hipdnn_mlir.__file__).parent / "lib" / "libhipdnn_host.so"
    source = Path(__file__).with_name("fake_hip.c")
    options = [
        "-shared",
        "-fPIC",
        "-Wall",
        "-Werror",
        f"-I{HEADERS}",
        "-Wl,--no-as-needed",
        f"-Wl,-rpath,{host.parent}",
    ]
    subprocess.run([compiler, *options, str(source), str(host), "-o", str(folder / "libamdhip64.so")], check=True)
    (folder / "libhipdnn_backend.so").symlink_to(host)
    return folder
