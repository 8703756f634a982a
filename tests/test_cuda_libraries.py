"""Which of NVIDIA's libraries a process opens: those of the Python environment come first, whatever is asked of the port first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hipdnn_mlir
import installed

PACKAGE = Path(hipdnn_mlir.__file__).parent


@pytest.mark.parametrize(
    "ask",
    [
        "from hipdnn_mlir_runtime.session.devices import list_devices; list_devices()",
        "from hipdnn_mlir_runtime.cli import main; main.call(['devices'])",
        "from hipdnn_mlir.placement import plans; plans._opened('sm_90', False)",
    ],
)
def test_cudnn_of_the_environment_is_opened_when_devices_are_asked_for(ask: str, tmp_path: Path) -> None:
    cudnn = tmp_path / "nvidia" / "cudnn" / "lib" / "libcudnn_graph.so.9"
    cudnn.parent.mkdir(parents=True)
    # Any library will do: it is opened by its name.
    shutil.copy(installed.library("cuda"), cudnn)
    code = f"{ask}\nprint(open('/proc/self/maps').read())"
    paths = os.pathsep.join([str(tmp_path), str(PACKAGE.parent)])
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(cudnn) in done.stdout
