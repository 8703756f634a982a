"""Programs from people whose code a user would not run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import hipdnn_mlir
import models
from bucket_models import SAFE
from conftest import Command
from hipdnn_mlir_runtime.errors import ProgramError, WrongTargetError
from ort_ep.sessions import make_session

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


@pytest.fixture(scope="module")
def of_any_batch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers on rows of 64 numbers; 1 MiB is more than 1,000 rows need, and less than 5,000."""
    model = models.mlp(2, (64, 128, 32))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    path = tmp_path_factory.mktemp("any") / "m.onnx"
    onnx.save(model, path)
    hipdnn_mlir.compile(path).save(path.with_suffix(".hipdnn"))
    return path


def test_memory_beyond_the_limit_is_refused_at_the_sizes_that_need_it(of_any_batch: Path) -> None:
    session = hipdnn_mlir.load(of_any_batch.with_suffix(".hipdnn"), memory_limit_mb=1)
    name = session.inputs[0].name
    (small,) = session.run(None, {name: np.ones((1000, 64), np.float32)})
    # Inputs and outputs alone have 3 MiB.
    with pytest.raises(
        ProgramError, match=r"needs \d+ MiB at these sizes.*expected at most 1 \(option memory_limit_mb\)"
    ) as raised:
        session.run(None, {name: np.ones((8192, 64), np.float32)})
    assert int(str(raised.value).split(" MiB")[0].split()[-1]) > 3
    np.testing.assert_array_equal(session.run(None, {name: np.ones((1000, 64), np.float32)})[0], small)


def test_command_refuses_memory_beyond_the_limit(of_any_batch: Path, command: Command) -> None:
    for rows, status in ((1000, 0), (8192, 2)):
        result = command("run", of_any_batch, "--shape", f"n={rows}", "--memory-limit", "1")
        assert result.returncode == status, result.stderr
    assert result.stderr.count("\n") == 1
    assert "option memory_limit_mb" in result.stderr


def test_provider_refuses_memory_beyond_the_limit(of_any_batch: Path, tmp_path: Path) -> None:
    session = make_session(of_any_batch, tmp_path, options={"memory_limit_mb": "1"})
    name = session.get_inputs()[0].name
    assert session.run(None, {name: np.ones((1000, 64), np.float32)})[0].shape == (1000, 32)
    with pytest.raises(Exception, match=r"option memory_limit_mb"):
        session.run(None, {name: np.ones((8192, 64), np.float32)})


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
