"""``verify --bisect``: defects that extensions bring are found, named and reproduced; where there is none, that is said."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import parser

import hipdnn_mlir
import models
from hipdnn_mlir.cli import bisect
from hipdnn_mlir.frontend.model_file import read_model
from hipdnn_mlir.report import pieces
from hipdnn_mlir.report.pieces import ModelInPieces
from hipdnn_mlir_runtime.cli import main as cli
from models import GraphBuilder

Command = Callable[..., subprocess.CompletedProcess[str]]
TESTS = Path(__file__).resolve().parent
SORT_ROWS = """
import custom_ops
from hipdnn_mlir import extension

@extension.custom_op("acme", "SortRows", id="acme.sort_rows")
def sort_rows(operands, attributes):
    return [operands[0]]
"""
RIGHT = SORT_ROWS + "custom_ops.register_sort_rows()\n"
WRONG = (
    SORT_ROWS
    + """
import ctypes
import numpy as np

@custom_ops.EXECUTE
def all_but_the_last(call, threads, user):
    rows = custom_ops.array(call.contents.inputs[0]).copy()
    rows[:, :-1] = np.sort(rows[:, :-1], axis=-1)
    custom_ops.array(call.contents.outputs[0])[...] = rows
    return 0

custom_ops.sort_rows = all_but_the_last
custom_ops.register_sort_rows()
"""
)
ROUNDING = """
from torch_mlir.dialects import torch
from hipdnn_mlir import extension
from hipdnn_mlir.ir.literals import splat
from hipdnn_mlir.ir.view import argument

@extension.pattern("short-reciprocal", after="canonicalize-torch")
def reciprocal(op: torch.AtenDivTensorOp):
    divisor = argument(op.other)
    if not divisor.scalar:
        return None
    factor = splat(round(1 / divisor.scalar, 3), (), divisor.type.dtype)
    return [torch.aten_mul_Tensor(op.result.type, op.self_, factor)]
"""
LAST_ALONE = """
from torch_mlir.dialects import torch
from hipdnn_mlir import extension
from hipdnn_mlir.ir.literals import splat
from hipdnn_mlir.ir.view import argument

@extension.pattern("wrong-where-it-is-last", after="canonicalize-torch")
def reciprocal(op: torch.AtenTanhOp):
    function = op.operation.parent.opview
    if len(function.type.results) > 1:
        return None
    scaled = torch.aten_mul_Tensor(op.result.type, op.self_, splat(1.1, (), argument(op.self_).type.dtype))
    return [torch.aten_sigmoid(op.result.type, scaled)]
"""
SORTED = """<ir_version: 10, opset_import: ["" : 21, "acme" : 1]>
g (float[4,6] x) => (float[4,5] y) <float[6,6] w = {%s}, float[6,5] v = {%s}> {
    [first] a = MatMul(x, w)
    [bounded] b = Tanh(a)
    [sorted] c = acme.SortRows(b)
    [second] d = MatMul(c, v)
    [last] y = Relu(d)
}
<domain: "acme", opset_import: ["" : 21]>
SortRows (t) => (s) { k = Constant<value_ints = [6]>() s, i = TopK<largest = 0>(t, k) }
"""


@pytest.fixture
def extensions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands can import the extensions above."""
    folder = tmp_path / "extensions"
    folder.mkdir()
    for name, text in {
        "right_sort": RIGHT,
        "wrong_sort": WRONG,
        "rounding": ROUNDING,
        "last_alone": LAST_ALONE,
    }.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(TESTS)]))


@pytest.fixture
def sorting(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    numbers = [", ".join(f"{x:.4f}" for x in rng.standard_normal(count)) for count in (36, 30)]
    path = tmp_path / "sorting.onnx"
    onnx.save(parser.parse_model(SORTED % tuple(numbers)), path)
    return path


def replay(command: Command, text: str, *, without: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command line that was printed; `without` an extension that it names."""
    program, *arguments = shlex.split(text)
    assert program == "hipdnn-mlir"
    if without:
        place = arguments.index(without)
        del arguments[place - 1 : place + 1]
    return command(*arguments)


def test_a_wrong_kernel_is_named_and_reproduced(command: Command, sorting: Path, extensions: None) -> None:
    fine = command("verify", sorting, "--bisect", "--extension", "right_sort")
    assert fine.returncode == 0, fine.stderr
    assert "Every step is within tolerance" in fine.stdout
    found = command("verify", sorting, "--bisect", "--extension", "wrong_sort", "--json")
    assert found.returncode == 1, found.stderr
    data = json.loads(found.stdout)["bisection"]
    fault = data["fault"]
    assert [(step["operations"], step["nodes"]) for step in fault["steps"]] == [("custom_op", "sorted")]
    assert (fault["nodes"], fault["inputs"]) == (["sorted"], ["b"])
    assert [(value["output"], value["within"]) for value in fault["values"]] == [("c", False)]
    assert [row["values"][0]["within"] for row in data["in_place"]] == [True, False, False]
    made = data["reproducer"]
    assert made["is_same"]
    assert sorted(path.name for path in Path(made["folder"]).iterdir()) == [
        "command.txt",
        "input-0.npy",
        "model.hipdnn",
        "model.onnx",
    ]
    assert [node.op_type for node in onnx.load(f"{made['folder']}/model.onnx").graph.node] == ["SortRows"]
    wrong = replay(command, made["command"])
    assert wrong.returncode == 1, wrong.stderr
    assert "differs" in wrong.stdout
    right = replay(command, made["command"].replace("wrong_sort", "right_sort"))
    assert right.returncode == 0, right.stderr
    assert "equal" in right.stdout


def test_a_wrong_fusion_is_named_within_its_step(command: Command, tmp_path: Path, extensions: None) -> None:
    b = GraphBuilder("m", opset=13)
    x = b.input("image", [1, 3, 10, 10])
    first = b.op("Relu", b.op("Conv", x, b.normal([8, 3, 3, 3], 0.3), pads=[1, 1, 1, 1]))
    second = b.op("Conv", first, b.normal([8, 8, 3, 3], 0.2), pads=[1, 1, 1, 1])
    scaled = b.op("Div", second, b.constant(3, np.float32))
    last = b.op("MaxPool", b.op("Relu", scaled), kernel_shape=[2, 2], strides=[2, 2])
    onnx.save(b.model({last: [1, 8, 5, 5]}), tmp_path / "m.onnx")
    found = command("verify", tmp_path / "m.onnx", "--bisect", "--extension", "rounding")
    assert found.returncode == 1, found.stderr
    lines = found.stdout.splitlines()
    assert "  nodes: Conv_1, Div_0, Relu_1" in lines
    assert any(re.fullmatch(r"  \d+: conv2d .*relu \[HOST_\w+, g_[0-9a-f]{16}\]", line) for line in lines), lines
    assert "the step is at fault" in found.stdout
    assert "the same executables" in found.stdout  # channels last, as between the convolutions of the whole program
    again = replay(command, lines[-1])
    assert (again.returncode, "differs" in again.stdout) == (1, True), again.stderr
    without = replay(command, lines[-1], without="rounding")
    assert (without.returncode, "equal" in without.stdout) == (0, True), without.stderr


def test_errors_that_add_up_are_no_fault_of_a_step(command: Command, tmp_path: Path, extensions: None) -> None:
    b = GraphBuilder("m")
    x = b.input("x", [4, 16])
    for _ in range(6):  # each quotient is off by one in a thousand, all in the same direction
        x = b.op("Div", b.op("MatMul", x, b.uniform([16, 16], 0, 0.4)), b.constant(3, np.float32))
    onnx.save(b.model({x: [4, 16]}), tmp_path / "m.onnx")
    options = ["--bisect", "--tolerance", "0.0035", "--extension", "rounding"]
    found = command("verify", tmp_path / "m.onnx", *options, "--json")
    assert found.returncode == 1, found.stderr
    data = json.loads(found.stdout)["bisection"]
    assert data["fault"] is None
    largest = [row["values"][0]["largest"] for row in data["in_place"]]
    np.testing.assert_allclose(largest, 1e-3 * np.arange(1, 7), rtol=0.05)
    np.testing.assert_allclose([row["values"][0]["largest"] for row in data["alone"]], 1e-3, rtol=0.05)
    again = replay(command, data["reproducer"]["command"])
    assert again.returncode == 1, again.stderr
    text = command("verify", tmp_path / "m.onnx", *options).stdout
    assert "The first beyond tolerance is step 3." in text
    assert "No step is beyond tolerance by itself" in text
    assert "at fault:" not in text


def test_a_fault_that_more_outputs_hide_is_said_so(command: Command, tmp_path: Path, extensions: None) -> None:
    b = GraphBuilder("m")
    hidden = b.op("MatMul", b.input("x", [4, 8]), b.normal([8, 8], 0.3))
    onnx.save(b.model({b.op("MatMul", b.op("Tanh", hidden), b.normal([8, 4], 0.3)): [4, 4]}), tmp_path / "m.onnx")
    found = command("verify", tmp_path / "m.onnx", "--bisect", "--extension", "last_alone")
    assert found.returncode == 1, found.stderr
    assert "Every step is within tolerance" in found.stdout
    assert "the fault shows only in the program as it is" in found.stdout
    assert "Reduced model" not in found.stdout


def test_values_are_compared_in_batches(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx.save(models.mlp(), tmp_path / "m.onnx")
    rows = [verified(capsys, tmp_path / "m.onnx")[1]["bisection"]["in_place"]]
    monkeypatch.setattr(bisect, "_BATCH_BYTES", 1)
    monkeypatch.setattr(pieces, "_INLINE_BYTES", 1)  # weights beside their model, as those of large ones
    rows.append(verified(capsys, tmp_path / "m.onnx")[1]["bisection"]["in_place"])
    assert [[row["nodes"] for row in found] for found in rows] == [[["Gemm_0", "Relu_0"], ["Gemm_1"]]] * 2


def verified(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the JSON of a verification in this process."""
    status = cli.call(["verify", str(path), "--bisect", "--in-process", "--json", *options])
    printed = capsys.readouterr()
    assert status in (0, 1), printed.err
    return status, json.loads(printed.out)


@pytest.mark.parametrize("precision", ["model", "tf32", "f16", "bf16"])
def test_every_step_is_within_tolerance_when_nothing_is_wrong(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, precision: str
) -> None:
    onnx.save(models.resnet(), tmp_path / "m.onnx")
    status, data = verified(capsys, tmp_path / "m.onnx", "--precision", precision)
    assert (status, data["verified"]) == (0, True)
    bisection = data["bisection"]
    assert bisection["precision"] == precision
    assert (bisection["fault"], bisection["alone"], bisection["reproducer"]) == (None, [], None)
    assert all(value["within"] for row in bisection["in_place"] for value in row["values"])
    numbers = [step["number"] for row in bisection["in_place"] for step in row["steps"]]
    steps = 1 + max(numbers)
    assert len(set(numbers)) >= steps - 1  # but for the conversion of the input
    assert steps > 5


MODELS = {
    "dynamic": """g (float[n,3,2] x) => (float[n,k] y) {
        r = Sigmoid(x) s = Shape<start=0, end=1>(r) m = Constant<value_ints=[-1]>() t = Concat<axis=0>(s, m)
        v = Reshape(r, t) q = Softmax(v) y = Tanh(q) }""",
    "integers": """g (int64[4,3] x, float[10,8] t) => (float[4,3,8] y, int64[4] i) {
        y = Gather(t, x) s = Relu(y) a = ArgMax<axis=1, keepdims=0>(x) i = Identity(a) }""",
    "views": """g (float[4,3] x) => (float[3,4] y, float[12] z, float[4,3] u) {
        y = Transpose(x) r = Relu(x) s = Constant<value_ints=[12]>() z = Reshape(r, s) u = Identity(x) }""",
    "branches": """g (float[2,4] x) => (float[2,4] y) <bool c={1}> {
        a = Relu(x)
        b = If(c)<then_branch = t () => (float[2,4] o) { o = Neg(a) }, else_branch = e () => (float[2,4] p) { p = Abs(a) }>
        y = Softmax(b) }""",
    "parts": """g (float[4,6] x) => (float[4,6] y) {
        a, b = Split<axis=1, num_outputs=2>(x) c = Tanh(a) d = Sigmoid(b) y = Concat<axis=1>(d, c) }""",
    "quantized": """g (float[2,4] x) => (float[2,3] y)
        <float s={0.05}, int8 z={0}, float v={0.1}, int8[4,3] w={1,2,3,4,5,6,7,8,9,10,11,12}> {
        a = QuantizeLinear(x, s, z) b = DequantizeLinear(a, s, z) c = DequantizeLinear(w, v, z) d = MatMul(b, c) y = Relu(d) }""",
}


@pytest.mark.parametrize("name", MODELS)
def test_models_of_all_kinds_can_be_cut(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    made = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\n{MODELS[name]}')
    onnx.save(made, tmp_path / "m.onnx")
    buckets = ["--bucket", "n=2,4"] if name == "dynamic" else []
    status, data = verified(capsys, tmp_path / "m.onnx", *buckets)
    rows = data["bisection"]["in_place"]
    assert (status, data["bisection"]["fault"]) == (0, None)
    compared = {value["output"] for row in rows for value in row["values"]}
    assert compared >= {row["output"] for row in data["outputs"]}
    assert data["bisection"]["left_out"] == []


def test_nothing_is_verified_when_every_output_is_constant(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    b = GraphBuilder("m")
    x = b.input("x", [2, 8])
    zeros = b.op("Relu", b.op("Neg", b.op("Abs", x)))
    onnx.save(b.model({b.op("Softmax", zeros): [2, 8]}), tmp_path / "m.onnx")
    status, data = verified(capsys, tmp_path / "m.onnx")
    assert (status, data["verified"]) == (1, False)
    assert [(row["constant"], row["within"]) for row in data["outputs"]] == [(True, None)]
    assert all(value["within"] is None for row in data["bisection"]["in_place"] for value in row["values"])
    assert cli.call(["verify", str(tmp_path / "m.onnx"), "--bisect", "--in-process"]) == 1
    text = capsys.readouterr().out
    assert "Nothing is verified: every output is constant" in text
    assert "Constant in every element" in text
    assert "within\n" not in text


@pytest.mark.parametrize("is_image", [True, False])
def test_pieces_on_values_of_the_whole_give_its_values(tmp_path: Path, is_image: bool) -> None:
    """In ONNX Runtime alone: cutting changes nothing."""
    path = tmp_path / "m.onnx"
    made = models.resnet(size=36) if is_image else models.encoder(2, s=16, d=32, heads=2, ffn=64)
    onnx.save(made, path)
    program = hipdnn_mlir.compile(path)
    session = program.session()
    rng = np.random.default_rng(0)
    feeds = {p.name: rng.standard_normal(p.shape).astype(p.numpy_dtype) for p in session.inputs}
    shapes = {name: array.shape for name, array in feeds.items()}
    names = [step["name"] for step in session.steps]
    last = [[((1, 8, 9, 9), (648, 1, 72, 8))] for _ in names]  # some values with their channels last
    cut = ModelInPieces(read_model(path), shapes, names, last)
    values = {name for piece in cut.pieces for name in (*piece.inputs, *piece.outputs)} - feeds.keys()
    cut.save(cut.watched(values), path)
    whole = {**feeds, **dict(zip(values, ort_values(path, values, feeds), strict=True))}
    moved = []
    for piece in cut.pieces:
        cut.save(cut.alone(piece, whole), path)
        given = {name: cut.to_memory(name, whole[name]) for name in piece.inputs}
        moved += [name for name in piece.inputs if given[name].shape != whole[name].shape]
        for name, got in zip(piece.outputs, ort_values(path, piece.outputs, given), strict=True):
            array = cut.from_memory(name, got, whole[name].shape)
            np.testing.assert_allclose(array, whole[name], rtol=1e-4, atol=1e-5)
    assert bool(moved) == is_image
    assert {step for piece in cut.pieces for step in piece.steps} == set(range(len(names)))
    assert sum(len(batch) for batch in cut.batches(1)) == len(list(cut.batches(1))) == len(cut.pieces)


def ort_values(path: Path, names: Collection[str], feeds: dict[str, Any]) -> list[Any]:
    return ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(list(names), feeds)
