"""The provider on the port ``cuda``: NVIDIA's memory, models compiled ahead on a machine without the GPU, options.

The host's library plays the GPU's, so that graphs compute; kernels of the GPU are taken and do nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
import models
from hipdnn_mlir_runtime import _runtime
from hipdnn_mlir_runtime.errors import DeviceError

from .counting_port import lay_out
from .gpu_worker import PARTS
from .sessions import make_session, reference, session_options
from .test_ep_context import attribute, change_attribute, compile_to, contexts, edit_program

NVIDIA = 0x10DE
TESTS = Path(__file__).resolve().parents[1]
PACKAGES = Path(hipdnn_mlir.__file__).absolute().parents[1]
ROWS, COLUMNS = 64, 64

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler cc for the counting library")


def perceptron() -> onnx.ModelProto:
    """Two layers in f16, which are two graphs of cuDNN and no kernel."""
    model = models.mlp(ROWS, (COLUMNS, 128, 32))
    for value, name in ((model.graph.input[0], "x"), (model.graph.output[0], "y")):
        old = value.name
        value.name = name
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
        for node in model.graph.node:
            for names in (node.input, node.output):
                names[:] = [name if found == old else found for found in names]
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor).astype(np.float16)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A provider with the counting port, a compiled model, its input and ONNX Runtime's output."""
    made = tmp_path_factory.mktemp("cuda")
    lay_out(made, played_by="libhipdnn_host.so", architecture="sm_90")
    model = perceptron()
    compile_to(made / "good.onnx", model, made / "cache", embed=True, options={"target": "sm_90"})
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float16)
    np.save(made / "x.npy", x)
    np.save(made / "y.npy", reference(model, {"x": x})[0])
    return made


def act(
    folder: Path, action: str, *, model: str = "good.onnx", options: dict[str, str] | None = None, **variables: str
) -> Any:
    """Perform an action of gpu_worker.py in a process of its own."""
    arguments = [folder / "libhipdnn_ep.so", folder / model, folder / "x.npy"]
    given = {"plan_cache": "none", **(options or {})}
    command = [sys.executable, "-P", "-m", "ort_ep.gpu_worker", *map(str, arguments), json.dumps(given), action]
    environment = os.environ | {"PYTHONPATH": f"{TESTS}{os.pathsep}{PACKAGES}"} | variables
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def check_y(folder: Path, y: Any) -> None:
    np.testing.assert_allclose(
        np.array(y, np.float32), np.load(folder / "y.npy").astype(np.float32), rtol=2e-2, atol=1e-2
    )


def test_gpu_is_offered_where_the_port_has_one(folder: Path) -> None:
    """ONNX Runtime itself knows of no NVIDIA GPU on most machines that run this."""
    assert ["GPU", NVIDIA, "NVIDIA"] in act(folder, "offers")


def test_host_arrays_are_copied_in_and_out(folder: Path) -> None:
    check_y(folder, act(folder, "plain"))


@pytest.mark.parametrize("action", ["bound", "pointers"])
def test_bound_values_are_neither_copied_nor_waited_for(action: str, folder: Path) -> None:
    answer = act(folder, action)
    check_y(folder, answer["y"])
    assert answer["flushed"] == {"synchronizations": 1}  # ONNX Runtime's own, at the end of a run
    assert answer["unflushed"] == {}


def test_compiled_ahead_without_the_device(folder: Path) -> None:
    (node,) = contexts(folder / "good.onnx")
    text = attribute(node, "ep_sdk_version")
    assert isinstance(text, bytes)
    assert b"target=sm_90;hipdnn=any" in text


def test_context_names_the_target_without_what_is_behind_it(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "tf32.onnx"
    compile_to(path, perceptron(), folder / "cache", embed=True, options={"target": "sm_90+tf32"})
    (node,) = contexts(path)
    text = attribute(node, "ep_sdk_version")
    assert isinstance(text, bytes)
    assert b"target=sm_90;hipdnn=any" in text


def test_session_that_compiles_ahead_cannot_run(folder: Path, tmp_path: Path) -> None:
    entries = {
        "ep.context_enable": "1",
        "ep.context_file_path": str(tmp_path / "out.onnx"),
        "ep.context_embed_mode": "1",
    }
    session = make_session(perceptron(), folder / "cache", options={"target": "sm_90"}, entries=entries)
    with pytest.raises(Exception, match="compiled ahead for target 'sm_90', this session's device runs 'host'"):
        session.run(None, {"x": np.load(folder / "x.npy")})


def test_model_compiled_ahead_is_refused_on_the_cpu(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"EPContext node.*compiled for target 'sm_90', this device runs 'host'"):
        make_session(folder / "good.onnx", tmp_path, options={"compiler": "none"})


def test_older_nvidia_target_is_taken_and_a_newer_one_refused(folder: Path) -> None:
    for target in ("sm_80", "sm_120"):
        settings = session_options(folder / "cache", options={"placement": "maximal", "target": "sm_90"})
        ort.ModelCompiler(
            settings, perceptron().SerializeToString(), embed_compiled_data_into_model=True
        ).compile_to_file(str(folder / f"{target}.onnx"))
        (node,) = contexts(folder / f"{target}.onnx")
        blob, text = attribute(node, "ep_cache_context"), attribute(node, "ep_sdk_version")
        assert isinstance(blob, bytes)
        assert isinstance(text, bytes)
        change_attribute(folder / f"{target}.onnx", "ep_cache_context", edit_program(blob, "target", target))
        change_attribute(folder / f"{target}.onnx", "ep_sdk_version", text.replace(b"sm_90", target.encode()))
    check_y(folder, act(folder, "plain", model="sm_80.onnx"))
    message = act(folder, "plain", model="sm_120.onnx")["error"]
    assert "compiled for target 'sm_120', this device runs 'sm_90'; compile the model again for this device" in message


def test_missing_memory_is_named_and_the_process_goes_on(folder: Path) -> None:
    compile_to(folder / "large.onnx", large(), folder / "cache", embed=True, options={"target": "sm_90"})
    answer = act(folder, "after_failure", model="large.onnx", FAKE_MEMORY_BYTES=str(1 << 20))
    assert len(answer["messages"]) == 2
    for message in answer["messages"]:
        assert "hipMalloc(" in message
        assert re.search("out of memory.*; use a smaller batch or free memory", message)
    check_y(folder, answer["y"])


def large() -> onnx.ModelProto:
    """A layer whose weights are more than a mebibyte."""
    shape = f"{ROWS}, {COLUMNS}"
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 17]> g (float16[{shape}] x) => (float16[{ROWS}, 16384] y) {{ y = MatMul(x, w) }}'
    )
    weight = np.ones((COLUMNS, 16384), np.float16)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    return model


def test_plan_options_reach_the_device(folder: Path, tmp_path: Path) -> None:
    options = {"autotune": "2", "plan_cache": str(tmp_path / "plans")}
    check_y(folder, act(folder, "plain", options=options))
    assert list((tmp_path / "plans").iterdir())
    message = act(folder, "plain", options={"engine": "NO_SUCH_ENGINE"})["error"]
    assert "engine 'NO_SUCH_ENGINE' is unknown: port 'cuda' has" in message


def test_plans_are_kept_in_the_cache_folder_of_the_session(folder: Path, tmp_path: Path) -> None:
    check_y(folder, act(folder, "plain", options={"plan_cache": "", "cache_dir": str(tmp_path)}))
    assert list((tmp_path / "plans").iterdir())


def test_wrong_program_options_are_errors(folder: Path) -> None:
    assert (
        "option 'tf32' = 'yes': expected one of 'auto', '0', '1'"
        in act(folder, "plain", options={"tf32": "yes"})["error"]
    )


def test_failed_launch_is_named_and_the_process_goes_on(folder: Path) -> None:
    path = folder / "launches.onnx"
    compile_to(path, launches(), folder / "cache", embed=True, options={"target": "sm_90"})
    (node,) = contexts(path)
    blob = attribute(node, "ep_cache_context")
    assert isinstance(blob, bytes)
    kernels = program_of(blob)["kernels"]
    for kernel in kernels:
        kernel["code"]["block"] = [1024, 4, 1]
    change_attribute(path, "ep_cache_context", edit_program(blob, "kernels", kernels))
    answer = act(folder, "after_failure", model="launches.onnx")
    assert len(answer["messages"]) == 2
    for message in answer["messages"]:
        assert re.search(
            r"hipModuleLaunchKernel\(step .*\): .*1024x4x1 threads.*compile the model again with --target sm_90",
            message,
        )
    check_y(folder, answer["y"])


def launches() -> onnx.ModelProto:
    """What is generated code on a GPU."""
    shape = f"{ROWS}, {COLUMNS}"
    return onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 17]> g (float16[{shape}] x) => (float16[{shape}] y) {{ y = Softmax(x) }}'
    )


def program_of(blob: bytes) -> dict[str, Any]:
    """The program in a container."""
    length = struct.unpack("<Q", blob[:8])[0]
    program = json.loads(json.loads(blob[8 : 8 + length])["__metadata__"]["hipdnn_program"])
    assert isinstance(program, dict)
    return program


def test_context_with_code_is_refused_where_it_is_not_allowed(folder: Path) -> None:
    compile_to(folder / "code.onnx", launches(), folder / "cache", embed=True, options={"target": "sm_90"})
    (node,) = contexts(folder / "code.onnx")
    blob = attribute(node, "ep_cache_context")
    assert isinstance(blob, bytes)
    (kernel,) = (each["name"] for each in program_of(blob)["kernels"])
    assert "error" not in act(folder, "plain", model="code.onnx")
    error = act(folder, "plain", model="code.onnx", options={"allow_code": "0"})["error"]
    assert f"holds code for a GPU, in kernel '{kernel}', which is not allowed here (option allow_code)" in error
    check_y(folder, act(folder, "plain", options={"allow_code": "0"}))  # graphs alone


def test_port_without_its_library_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"port 'cuda': cannot open libhipdnn_cuda\.so.*reinstall the package"):
        _runtime.open_device({"port": "cuda"}, directory=str(tmp_path))


def test_driver_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(b"not a library")
    code = "from hipdnn_mlir_runtime import _runtime; _runtime.open_device({'port': 'cuda'})"
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(PACKAGES)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert re.search(r"DeviceError: .*cannot open libcuda\.so\.1 \(.*\); install NVIDIA's driver", done.stderr)


def open_rows(model: onnx.ModelProto) -> onnx.ModelProto:
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "rows"
    del model.graph.value_info[:]
    return model


@pytest.fixture(scope="module")
def bucketed(folder: Path) -> Path:
    """The perceptron with an open number of rows, compiled ahead for two of them: more than a few, since code does not run here."""
    path = folder / "bucketed.onnx"
    options = {"target": "sm_90", "buckets": "rows=40,64;unknown=3"}
    compile_to(path, open_rows(perceptron()), folder / "cache", embed=True, options=options)
    (node,) = contexts(path)
    blob = attribute(node, "ep_cache_context")
    assert isinstance(blob, bytes)
    assert [made["sizes"] for made in program_of(blob)["specializations"]] == [[40], [64]]
    return path


def test_sizes_between_buckets_are_padded_on_the_device(folder: Path, bucketed: Path) -> None:
    answers = act(folder, "parts", model=bucketed.name)
    wanted = np.load(folder / "y.npy").astype(np.float32)
    for count in PARTS:
        np.testing.assert_allclose(np.array(answers[str(count)], np.float32), wanted[:count], rtol=2e-2, atol=1e-2)


def test_bound_values_between_buckets_stay_on_the_device(folder: Path, bucketed: Path) -> None:
    answer = act(folder, "bound_part", model=bucketed.name)
    wanted = np.load(folder / "y.npy").astype(np.float32)[: PARTS[1]]
    np.testing.assert_allclose(np.array(answer["y"], np.float32), wanted, rtol=2e-2, atol=1e-2)
    assert "synchronizations" not in answer["unflushed"]


def test_a_size_above_the_buckets_is_named_where_there_is_no_compiler(folder: Path) -> None:
    path = folder / "small.onnx"
    options = {"target": "sm_90", "buckets": "rows=40"}
    compile_to(path, open_rows(perceptron()), folder / "cache", embed=True, options=options)
    answers = act(folder, "parts", model=path.name)
    assert "'x', dimension 0 ('rows'): 41 is above the buckets 40" in answers["41"]
    assert len(answers["40"]) == 40


def test_dynamic_dimensions_need_buckets_where_a_model_is_compiled_ahead(folder: Path) -> None:
    with pytest.raises(
        Exception, match=r"dynamic: rows.*make its dimensions static.*for a GPU, list sizes with the option 'buckets'"
    ):
        compile_to(
            folder / "none.onnx", open_rows(launches()), folder / "cache", embed=True, options={"target": "sm_90"}
        )


@pytest.mark.parametrize(
    "text", ["rows", "rows=", "=1", "rows=0", "rows=4,2", "rows=1,x", "rows=1;rows=2", "rows=1,,2"]
)
def test_wrong_buckets_are_errors(text: str, folder: Path) -> None:
    message = act(folder, "plain", options={"buckets": text})["error"]
    assert f"option 'buckets' = '{text}': expected sizes with rising numbers from 1 on" in message
