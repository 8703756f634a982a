"""What the command line does with good input, compared with ONNX Runtime and NumPy where there are values."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
import pytest

from conftest import Command
from models import GraphBuilder, resnet


@pytest.mark.parametrize("in_process", [[], ["--in-process"]], ids=["child", "here"])
def test_run_writes_the_outputs_of_onnxruntime_when_inputs_are_given(
    command: Command, small_model: Path, tmp_path: Path, in_process: list[str]
) -> None:
    image = np.random.default_rng(1).standard_normal((1, 3, 32, 32), np.float32)
    np.save(tmp_path / "image.npy", image)
    out = tmp_path / "out.npz"
    result = command("run", small_model, "--input", f"image={tmp_path / 'image.npy'}", "-o", out, *in_process, env={})
    assert result.returncode == 0, result.stderr
    reference = ort.InferenceSession(small_model, providers=["CPUExecutionProvider"])
    name = reference.get_outputs()[0].name
    (want,) = reference.run(None, {"image": image})
    with np.load(out) as got:
        assert got.files == [name]
        np.testing.assert_allclose(got[name], want, rtol=1e-4, atol=1e-5)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_run_reads_and_writes_whatever_names_and_types_a_model_has(command: Command, tmp_path: Path) -> None:
    bfloat = onnx.helper.make_tensor_value_info("a=b", onnx.TensorProto.BFLOAT16, [2])
    outputs = [
        onnx.helper.make_tensor_value_info("file", onnx.TensorProto.FLOAT, [2]),
        onnx.helper.make_tensor_value_info("allow_pickle", onnx.TensorProto.BFLOAT16, [2]),
    ]
    nodes = [
        onnx.helper.make_node("Cast", ["a=b"], ["file"], to=onnx.TensorProto.FLOAT),
        onnx.helper.make_node("Neg", ["a=b"], ["allow_pickle"]),
    ]
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [bfloat], outputs)), tmp_path / "m.onnx")
    x = np.array([1.5, -2], ml_dtypes.bfloat16)
    np.save(tmp_path / "x=1.npy", x)
    out = tmp_path / "out.npz"
    result = command("run", tmp_path / "m.onnx", "--input", f"a=b={tmp_path / 'x=1.npy'}", "-o", out)
    assert result.returncode == 0, result.stderr
    with np.load(out) as got:
        assert got.files == ["file", "allow_pickle"]
        np.testing.assert_array_equal(got["file"], x.astype(np.float32))
        np.testing.assert_array_equal(got["allow_pickle"].view(x.dtype), -x)


def test_json_has_null_for_what_is_not_finite(command: Command, tmp_path: Path) -> None:
    b = GraphBuilder("m")
    onnx.save(b.model({b.op("Log", b.input("x", [2])): [2]}), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.array([0, 1], np.float32))
    result = command("run", tmp_path / "m.onnx", "--input", f"x={tmp_path / 'x.npy'}", "--json")
    (output,) = json.loads(result.stdout, parse_constant=pytest.fail)["outputs"]
    assert (output["min"], output["max"]) == (None, 0)


def test_run_exits_0_when_outputs_equal_the_reference(command: Command, small_model: Path) -> None:
    result = command("run", small_model, "--compare", "ort", "--repeat", 3, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    (difference,) = report["differences"]
    assert difference["within"]
    assert 0 <= difference["absolute"] < 1e-4
    assert [timing["runs"] for timing in report["timings"].values()] == [3, 3]
    (output,) = report["outputs"]
    assert output["min"] <= output["mean"] <= output["max"]
    assert f"{output['mean']:.6g}" in command("run", small_model).stdout


def test_run_exits_1_when_outputs_differ_from_the_reference(command: Command, program: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    onnx.save(resnet(seed=1), other)
    result = command("run", program, "--compare", "ort", "--reference", other)
    assert result.returncode == 1, result.stderr
    assert "differs" in result.stdout
    assert result.stderr == f"{program} was compiled from another model than {other}: their SHA-256 differ\n"


def test_run_does_not_blame_the_reference_when_it_is_the_programs_model(
    command: Command, program: Path, small_model: Path
) -> None:
    result = command("run", program, "--compare", "ort", "--reference", small_model, "--rtol", 0, "--atol", 0)
    assert (result.returncode in (0, 1), result.stderr) == (True, "")


def test_run_exits_1_when_the_tolerance_is_zero(command: Command, small_model: Path) -> None:
    result = command("run", small_model, "--compare", "ort", "--rtol", 0, "--atol", 0, "--json")
    exact = json.loads(result.stdout)["differences"][0]["absolute"] == 0
    assert result.returncode == (0 if exact else 1)


def test_run_gives_the_same_outputs_when_the_seed_is_the_same(command: Command, program: Path, tmp_path: Path) -> None:
    arrays = []
    for index, seed in enumerate([3, 3, 4]):
        path = tmp_path / f"{index}.npz"
        assert command("run", program, "--seed", seed, "-o", path).returncode == 0
        with np.load(path) as file:
            arrays.append(file[file.files[0]])
    np.testing.assert_array_equal(arrays[0], arrays[1])
    assert np.abs(arrays[0] - arrays[2]).max() > 1e-3


def test_compile_fixes_open_dims_when_shapes_are_given(command: Command, tmp_path: Path) -> None:
    model = resnet()
    for port in [*model.graph.input, *model.graph.output]:
        port.type.tensor_type.shape.dim[0].dim_param = "batch"
    path = tmp_path / "open.onnx"
    onnx.save(model, path)
    result = command("compile", path, "--shape", "image=2x3x32x32", "--json")
    assert result.returncode == 0, result.stderr
    data = json.loads(result.stdout)
    assert data["inputs"] == [{"name": "image", "dtype": "f32", "dims": [2, 3, 32, 32]}]
    assert data["outputs"][0]["dims"] == [2, 10]
    assert Path(data["output"]).name == "open.hipdnn"
    assert path.with_suffix(".hipdnn").is_file()


def test_compile_writes_the_ir_of_every_step_when_asked_to(command: Command, small_model: Path, tmp_path: Path) -> None:
    result = command("compile", small_model, "-o", tmp_path / "x.hipdnn", "--dump-ir", tmp_path / "ir")
    assert result.returncode == 0, result.stderr
    names = sorted(path.name for path in (tmp_path / "ir").iterdir())
    assert len(names) >= 5
    assert [int(name.partition("-")[0]) for name in names] == [*range(1, len(names) + 1)]
    assert all(name.endswith(".mlir") for name in names)
    dumps = [path.read_text() for path in (tmp_path / "ir").iterdir()]
    assert any("hipdnn.graph ins(" in text for text in dumps)
    assert not any("operandSegmentSizes" in text for text in dumps)


def test_explain_places_every_node_when_the_model_is_supported(command: Command, small_model: Path) -> None:
    result = command("explain", small_model, "--json")
    assert result.returncode == 0, result.stderr
    data = json.loads(result.stdout)
    assert data["rejects"] == []
    placed = [node for graph in data["graphs"] for node in graph["nodes"]]
    assert {"Conv_0", "Relu_0", "MaxPool_0", "Add_0", "Gemm_0"} <= set(placed)
    with_conv = next(graph for graph in data["graphs"] if "Conv_0" in graph["nodes"])
    assert "Relu_0" in with_conv["nodes"]
    assert with_conv["engine"]


def test_explain_gives_a_reason_when_a_node_is_left_out(command: Command, tmp_path: Path) -> None:
    b = GraphBuilder("determinant")
    path = tmp_path / "determinant.onnx"
    onnx.save(b.model({b.op("Det", b.input("x", [2, 4, 4])): [2]}), path)
    result = command("explain", path, "--json")
    assert result.returncode == 0, result.stderr
    (reject,) = json.loads(result.stdout)["rejects"]
    assert reject["node"] == "Det_0"
    assert reject["reason"]
    table = command("explain", path)
    assert "Det_0" in table.stdout


def test_inspect_shows_inputs_steps_and_memory_when_given_a_program(command: Command, program: Path) -> None:
    data = json.loads(command("inspect", program, "--json").stdout)
    assert data["inputs"] == [{"name": "image", "dtype": "f32", "dims": [1, 3, 32, 32]}]
    assert sum(executable["steps"] for executable in data["executables"]) == sum(
        step["kind"] == "execute" for step in data["steps"]
    )
    ran = dict.fromkeys(step["summary"] for step in data["steps"] if step["kind"] == "execute")
    assert [*dict.fromkeys(row["summary"] for row in data["executables"])] == [*ran]
    assert len(ran) > 1
    memory = data["memory"]
    assert memory["largest_live_set_bytes"] <= memory["arena_bytes"] <= 1.1 * memory["largest_live_set_bytes"]
    table = command("inspect", program)
    assert table.returncode == 0, table.stderr
    for text in ("image", "1x3x32x32", "Conv_0", "arena"):
        assert text in table.stdout
