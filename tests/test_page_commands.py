"""`profile`, `inspect --html` and `inspect --netron`: what the commands write and print."""

from __future__ import annotations

import json
import re
from pathlib import Path

import onnx
import pytest

from conftest import Command


def test_profile_shows_each_step_and_writes_trace_and_page(command: Command, program: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    steps = json.loads(command("inspect", program, "--json").stdout)["steps"]
    done = command("profile", program, "--repeat", 3, "--trace", "t.json", "--html", "p.html", "--sort", "order")
    assert done.returncode == 0, done.stderr
    shown = [line for line in done.stdout.splitlines() if re.search(r"  (execute|launch|copy)  ", line)]
    assert len(shown) == len(steps)
    assert all(step["name"] in line for step, line in zip(steps, shown, strict=True))
    assert re.search(r"ceilings measured here: \d+\.\d GB/s, \d+ GFLOP/s f32", done.stdout)
    events = json.loads((work / "t.json").read_text())["traceEvents"]
    names = [event["name"] for event in events if event["ph"] == "X"]
    assert all(names.count(step["name"]) >= 3 for step in steps)
    page = (work / "p.html").read_text()
    assert "Time of all steps" in page
    assert '"times_us":null' not in page


def test_run_shows_the_profile_too_when_asked(command: Command, program: Path) -> None:
    done = command("run", program, "--profile", "--json")
    report = json.loads(done.stdout)
    assert report["outputs"]
    assert report["profile"]["steps"]
    assert "sum of steps" in command("run", program, "--profile").stdout


def test_inspect_writes_a_page_and_a_model_for_netron(
    command: Command, program: Path, small_model: Path, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    done = command("inspect", program, "--html", "p.html", "--netron", "n.onnx", "--reference", small_model)
    assert done.returncode == 0, done.stderr
    page = (work / "p.html").read_text()
    assert "torch.aten.convolution" in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    model = onnx.load(work / "n.onnx", load_external_data=False)
    assert {node.domain for node in model.graph.node} == {"hipdnn_mlir"}
    assert len(model.graph.node) == len(json.loads(command("inspect", program, "--json").stdout)["steps"])


@pytest.mark.parametrize(
    ("words", "message"),
    [(["explain", "m.onnx", "--html", "."], ".: a folder"), (["profile", "m.onnx", "--trace", "no/t"], "no: no such")],
)
def test_what_cannot_be_written_is_told_before_the_model_is_read(
    command: Command, tmp_path: Path, words: list[str], message: str
) -> None:
    (tmp_path / "work" / "m.onnx").touch()
    done = command(*words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr


def test_page_refuses_another_model(command: Command, program: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    x = onnx.helper.make_tensor_value_info("x", 1, [2])
    y = onnx.helper.make_tensor_value_info("y", 1, [2])
    onnx.save(
        onnx.helper.make_model(onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])),
        other,
    )
    done = command("inspect", program, "--html", "p.html", "--reference", other)
    assert (done.returncode, done.stdout) == (2, "")
    assert "not the model that the program was made from" in done.stderr
    assert not (tmp_path / "work" / "p.html").exists()
