"""Caches that grow in the model, through the provider on a GPU that the emulator plays, against ONNX Runtime's CPU provider."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hipdnn_mlir
from drawing import every
from generation.growing import growing_model

from .counting_port import lay_out
from .emulated_gpu import ROWS, STEPS
from .test_cuda_port import program_of
from .test_ep_context import attribute, compile_to, contexts

TESTS = Path(__file__).resolve().parents[1]
PACKAGES = Path(hipdnn_mlir.__file__).absolute().parents[1]

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler cc for the counting library")


@pytest.fixture(scope="module", params=every(2, ["flags", "by index"]))  # gpu/test_growing.py has both
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What came of the steps, by who owns the caches."""
    provider = lay_out(tmp_path_factory.mktemp("played"), played_by="libhipdnn_host.so", architecture="sm_90")
    command = [sys.executable, "-P", "-m", "ort_ep.emulated_gpu", str(provider), request.param]
    environment = os.environ | {"PYTHONPATH": f"{TESTS}{os.pathsep}{PACKAGES}"}
    told = json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert "error" not in told, told["error"]
    for of_owner in told.values():
        for step, found, wanted in zip(STEPS, of_owner["found"], of_owner["wanted"], strict=True):
            np.testing.assert_allclose(np.array(found), np.array(wanted), rtol=2e-5, atol=2e-5, err_msg=str(step))
    return told


def _steps(told: Any) -> list[dict[str, int]]:
    """What steps of one token of one text called."""
    return [counts for (batch, _, new), counts in zip(STEPS, told["counts"], strict=False) if (batch, new) == (1, 1)]


def test_caches_that_are_handed_back_are_copied_on_the_device(played: Any) -> None:
    told = played["provider"]
    steps = _steps(told)
    assert len({counts["launches"] for counts in steps}) == 1
    assert not any("to_host" in counts for counts in steps)
    assert [counts["to_device"] for counts in steps] == [1] * len(steps), "the number of valid rows"
    assert [counts["on_device"] for counts in steps[:2]] == [9, 9], "four caches in and out, and a mask"
    assert f"no room in the caches: expected at most {ROWS} rows, got {ROWS + 2}" in told["refused"][0]


def test_buffers_that_are_bound_as_past_and_present_are_not_copied(played: Any) -> None:
    told = played["caller"]
    *steps, last = _steps(told)
    assert [counts["on_device"] for counts in steps] == [1] * len(steps), "a mask that is shorter than the buffers"
    assert "on_device" not in last
    assert not any("to_host" in counts for counts in steps)
    assert f"{ROWS - 5} is none of the buckets {ROWS // 2}, {ROWS}" in told["refused"][1]


def test_the_provider_compiles_buckets_of_the_past_to_buffers(tmp_path: Path) -> None:
    options = {"target": "sm_90", "buckets": f"b=1;s=1;p={ROWS}"}
    compile_to(tmp_path / "m.onnx", growing_model(layers=1), tmp_path / "cache", embed=True, options=options)
    (node,) = contexts(tmp_path / "m.onnx")
    blob = attribute(node, "ep_cache_context")
    assert isinstance(blob, bytes)
    program = program_of(blob)
    assert program["symbols"][program["growing"]["rows"]] == "p"
    assert [port["name"] for port in program["inputs"]][-1] == "past_length"
    assert "past_length" not in node.input
