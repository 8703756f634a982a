"""Memory and streams of hip-python, AMD's Python package, which runs without ROCm where HIP is played by a library of its name."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import installed

pytestmark = [
    pytest.mark.skipif(find_spec("hip") is None, reason="hip-python is not installed: pip install '.[test]'"),
    pytest.mark.skipif(find_library("amdhip64") is not None, reason="needs a machine without AMD's HIP"),
]


@pytest.fixture(scope="module")
def told(libraries: Path) -> dict[str, Any]:
    script = Path(__file__).with_name("use_hip_python.py")
    paths = os.pathsep.join([str(script.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {"LD_LIBRARY_PATH": str(libraries), "FAKE_GCN_ARCH": "", "PYTHONPATH": paths}
    command = [sys.executable, "-P", str(script)]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_device_properties_of_the_host_library_are_read_as_hip_python_does() -> None:
    from hip import hip

    properties = hip.hipDeviceProp_t()
    host = ctypes.CDLL(str(installed.library("host")))
    assert host.hipGetDevicePropertiesR0600(ctypes.c_void_p(int(properties)), 0) == 0
    assert properties.c_sizeof() == 1472
    assert properties.name
    assert properties.gcnArchName in ("", b"")
    assert properties.multiProcessorCount == os.sysconf("SC_NPROCESSORS_ONLN")
    assert properties.totalGlobalMem == os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(
    "form",
    [
        "bytes",
        "pointer",
        "address of the stream",
        "typed",
        "typed, of a stream",
        "typed, of another stream",
        "on this GPU",
        "run",
    ],
)
def test_values_equal_numpy_in_every_form_of_memory(told: dict[str, Any], form: str) -> None:
    assert told[form] is True


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("other dims", "expected f32[4,6], got f32[6,4]"),
        ("other type", "expected f32[4,6], got f64[4,3]"),
        ("on another GPU", "the array lies on GPU 1, the session runs on GPU 0"),
        ("no such GPU", "port 'hip': device 1 does not exist: 1 found"),
        ("read-only", "'y'"),
        ("null", "a null pointer"),
    ],
)
def test_mistakes_are_told(told: dict[str, Any], form: str, message: str) -> None:
    assert message in told[form]
