"""Programs from people whose code a user would not run."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

import hipdnn_mlir
import models
from bucket_models import SAFE
from conftest import Command
from hipdnn_mlir_runtime.errors import ProgramError, WrongTargetError

GPU_OPTIONS = {
    "static": (lambda: models.resnet(), {}),
    "specialized": (lambda: SAFE["perceptron"][0], {"buckets": {"b": [2, 4]}}),
}


@pytest.fixture(params=GPU_OPTIONS)
def program(request: pytest.FixtureRequest) -> hipdnn_mlir.Program:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
    model, options = GPU_OPTIONS[request.param]
    return hipdnn_mlir.compile(model(), target="sm_90", **options)


@pytest.mark.parametrize("in_memory", [True, False], ids=["memory", "file"])
def test_code_is_refused_by_name_where_it_is_not_allowed(
    program: hipdnn_mlir.Program, tmp_path: Path, *, in_memory: bool
) -> None:
    kernels = json.loads(program.text)["kernels"]
    path = tmp_path / "m.hipdnn"
    program.save(path)
    source = program if in_memory else path
    # The host's port would refuse it for its target; what is said first shows that nothing was opened before.
    with pytest.raises(ProgramError, match="holds code for a GPU") as raised:
        hipdnn_mlir.load(source, port="host", allow_code=False)
    assert not isinstance(raised.value, WrongTargetError)
    assert f"kernels '{kernels[0]['name']}'" in str(raised.value)
    assert (str(path) in str(raised.value)) != in_memory


def test_a_program_without_code_loads_where_code_is_not_allowed(small_program: Path) -> None:
    session = hipdnn_mlir.load(small_program, allow_code=False)
    assert session.steps


def test_commands_refuse_code_where_it_is_not_allowed(command: Command, tmp_path: Path) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
    pytest.importorskip("ray", reason="Ray is not installed: pip install '.[serve]'")
    onnx.save(models.resnet(), tmp_path / "m.onnx")
    path = tmp_path / "m.hipdnn"
    hipdnn_mlir.compile(tmp_path / "m.onnx", target="sm_90").save(path)
    for action in ("run", "serve"):
        result = command(action, path, "--no-allow-code")
        assert result.returncode == 2, result.stderr
        assert result.stderr.count("\n") == 1, result.stderr
        assert "m.hipdnn: it holds code for a GPU" in result.stderr
