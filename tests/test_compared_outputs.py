"""What a comparison with ONNX Runtime says of outputs that do not depend on the inputs: they agree, and that says nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hipdnn_mlir_runtime.cli import main as cli
from models import GraphBuilder

Report = Callable[..., tuple[int, dict[str, Any], str]]
CONSTANT = ("zeros", "saturated", "weights", "winner", "sizes", "nan")
VARYING = ("relu", "scalar", "same", "argmax")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model with outputs that depend on its input ``x`` and outputs that do not."""
    b = GraphBuilder("m")
    x = b.input("x", [2, 8])
    bias = np.zeros(8, np.float32)
    bias[3] = 1000
    outputs = {
        "zeros": b.op("Mul", x, b.constant(0, np.float32)),
        "saturated": b.op("Sigmoid", b.op("Add", x, b.constant(100, np.float32))),
        "weights": b.op("Identity", b.normal([2, 8], 1.0)),
        "winner": b.op("ArgMax", b.op("Add", x, b.constant(bias, np.float32)), axis=1),
        "sizes": b.op("Shape", x),
        "nan": b.op("Sqrt", b.op("Sub", b.op("Neg", b.op("Abs", x)), b.constant(1, np.float32))),
        "relu": b.op("Relu", x),
        "scalar": b.op("ReduceMean", x, keepdims=0),
        "same": b.op("Expand", b.op("ReduceMean", x, keepdims=1), b.constant([4, 4], np.int64)),
        "argmax": b.op("ArgMax", x, axis=0),
    }
    made = b.model({name: [] for name in outputs.values()})
    for port, (name, value) in zip(made.graph.output, outputs.items(), strict=True):
        made.graph.node.append(helper.make_node("Identity", [value], [name], name=name))
        kind = TensorProto.INT64 if name in ("winner", "sizes", "argmax") else TensorProto.FLOAT
        port.CopyFrom(helper.make_tensor_value_info(name, kind, None))
    path = tmp_path / "m.onnx"
    onnx.save(onnx.shape_inference.infer_shapes(made), path)
    return path


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Report:
    """Return the exit code of a command, its JSON, and what it prints without ``--json``."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object) -> tuple[int, dict[str, Any], str]:
        given = [*map(str, arguments), "--in-process"]
        status = cli.call([*given, "--json"])
        data = json.loads(capsys.readouterr().out)
        assert cli.call(given) == status
        return status, data, capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    ("command", "rows", "verdict"),
    [(["run", "--compare", "ort"], "differences", "equal"), (["verify"], "outputs", "within")],
    ids=["run", "verify"],
)
def test_an_output_is_constant_when_other_inputs_give_the_same(
    model: Path, report: Report, command: list[str], rows: str, verdict: str
) -> None:
    status, data, text = report(command[0], model, *command[1:])
    assert status == 0
    found = {row["output"]: row["constant"] for row in data[rows]}
    assert found == {**dict.fromkeys(CONSTANT, True), **dict.fromkeys(VARYING, False)}
    assert all(row["within"] is (None if row["constant"] else True) for row in data[rows])
    lines = [line.split() for line in text.splitlines()]
    verdicts = {name: line[-1] for line in lines for name in found if name in line[:2]}
    assert verdicts == {**dict.fromkeys(CONSTANT, "constant"), **dict.fromkeys(VARYING, verdict)}
    assert text.count("says nothing of the program") == 1


def test_one_value_everywhere_is_constant_when_no_input_is_random(tmp_path: Path, report: Report) -> None:
    b = GraphBuilder("m")
    path = tmp_path / "m.onnx"
    onnx.save(b.model({b.op("Relu", b.input("x", [3, 4])): [3, 4]}), path)
    for values, constant in ((-np.ones((3, 4)), True), (np.arange(12.0).reshape(3, 4) - 6, False)):
        np.save(tmp_path / "x.npy", values.astype(np.float32))
        status, data, text = report("run", path, "--compare", "ort", "--input", f"x={tmp_path / 'x.npy'}")
        assert status == 0
        assert [row["constant"] for row in data["differences"]] == [constant]
        assert ("says nothing of the program" in text) == constant


def test_a_constant_output_differs_when_its_values_do(tmp_path: Path, report: Report) -> None:
    for name, value in (("a", 1), ("b", 2)):
        b = GraphBuilder("m")
        scaled = b.op("Mul", b.input("x", [4]), b.constant(0, np.float32))
        onnx.save(b.model({b.op("Add", scaled, b.constant(value, np.float32)): [4]}), tmp_path / f"{name}.onnx")
    status, data, text = report("run", tmp_path / "a.onnx", "--compare", "ort", "--reference", tmp_path / "b.onnx")
    assert (status, data["differences"][0]["within"]) == (1, False)
    assert "differs" in text
    assert "says nothing" not in text


def test_onnx_runtime_does_not_round_what_the_model_does_not(report: Report, tmp_path: Path) -> None:
    """By itself ONNX Runtime rounds x to 8 bits here, an error of 4e-3."""
    rng = np.random.default_rng(0)
    weights = helper.make_tensor("w", TensorProto.INT4, [32, 8], rng.integers(-8, 8, 256).tolist())
    scales = numpy_helper.from_array(rng.uniform(0.01, 0.1, (2, 8)).astype(np.float32), "s")
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 32])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 8])
    graph = helper.make_graph(nodes, "g", [x], [y], [weights, scales])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), tmp_path / "m.onnx")
    status, data, _ = report("run", tmp_path / "m.onnx", "--compare", "ort")
    assert (status, data["differences"][0]["within"]) == (0, True)
