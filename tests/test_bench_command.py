"""`hipdnn-mlir bench`: what it prints is what was measured, and it says so where a difference is noise."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import onnx
import pytest

from conftest import Command
from hipdnn_mlir_runtime.cli.bench import measured, summarized
from hipdnn_mlir_runtime.cli.competitors import COMPETITORS, Task
from hipdnn_mlir_runtime.errors import ModelError
from models import GraphBuilder

QUICK = ("--warmup", 0, "--duration", 0.2, "--threads", 1)


def test_table_and_json_have_each_subject(command: Command, small_model: Path) -> None:
    done = command("bench", small_model, "--against", "ort", *QUICK, "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert [row["name"] for row in data["latencies"]] == ["hipdnn-mlir", "ONNX Runtime CPU"]
    for row in data["latencies"]:
        assert 0 < row["fastest_ms"] <= row["p50_ms"] <= row["p90_ms"] <= row["p99_ms"]
        assert row["runs"] >= 2
    (ratio,) = data["ratios"]
    assert ratio["low"] <= ratio["median"] <= ratio["high"]
    text = command("bench", small_model, "--against", "ort", *QUICK).stdout
    assert re.search(
        r"hipdnn-mlir / ONNX Runtime CPU +\d+\.\d{3} \(\d+\.\d+ to \d+\.\d+\), (within noise|faster|slower)", text
    )


def test_programs_name_their_model_to_be_compared(command: Command, program: Path, small_model: Path) -> None:
    assert command("bench", program, *QUICK).returncode == 0
    refused = command("bench", program, "--against", "ort", *QUICK)
    assert refused.returncode == 2
    assert "--reference" in refused.stderr
    done = command("bench", program, "--against", "ort", "--reference", small_model, *QUICK)
    assert "ONNX Runtime CPU" in done.stdout


def test_batch_is_the_size_of_the_first_dynamic_dimension(command: Command, program: Path, tmp_path: Path) -> None:
    b = GraphBuilder("open")
    onnx.save(b.model({b.op("Relu", b.input("x", ["n", 8])): ["n", 8]}), tmp_path / "open.onnx")
    done = command("bench", tmp_path / "open.onnx", "--batch", 5, *QUICK, "--json")
    data = json.loads(done.stdout)
    assert data["batch"] == 5
    (row,) = data["latencies"]
    assert row["per_second"] > 5 * 1e3 / row["p99_ms"] / 10
    refused = command("bench", program, "--batch", 5, *QUICK)
    assert "the first dimension of input 'image' is static: expected 1, got 5" in refused.stderr


@pytest.mark.parametrize(
    ("ours", "theirs", "median", "verdict"),
    [
        ([1.0, 1.1, 0.9, 1.0], [2.0, 2.2, 1.8, 2.0], 0.5, "faster"),
        ([3.0, 3.1, 2.9, 3.0], [2.0, 2.0, 2.0, 2.0], 1.5, "slower"),
        ([1.2, 0.8, 1.3, 0.7], [1.0, 1.0, 1.0, 1.0], 1.0, "within noise"),
    ],
)
def test_ratio_is_that_of_neighbouring_turns(ours: list, theirs: list, median: float, verdict: str) -> None:
    report = summarized({"a": [[time] * 3 for time in ours], "b": [[time] * 5 for time in theirs]}, batch=4)
    (ratio,) = report.ratios
    assert ratio.median == pytest.approx(median)
    assert verdict in str(ratio)
    assert report.latencies[0].per_second == pytest.approx(4e3 * 4 / sum(ours))


def test_subjects_take_turns() -> None:
    calls: list[str] = []
    turns = measured({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, warmup_s=0, duration_s=0.3)
    order = [name for index, name in enumerate(calls) if index == 0 or calls[index - 1] != name]
    assert order == ["a", "b"] * (1 + 3)
    assert [len(blocks) for blocks in turns.values()] == [3, 3]


class FakeMigraphx(ModuleType):
    """ROCm's Python package for models of one Relu."""

    @staticmethod
    def get_target(name: str) -> str:
        return name

    @staticmethod
    def argument(array: np.ndarray) -> np.ndarray:
        return array

    @staticmethod
    def parse_onnx(path: str) -> SimpleNamespace:
        assert Path(path).exists()
        return SimpleNamespace(compile=lambda target: None, run=lambda given: [np.maximum(given["x"], 0)])


def test_migraphx_runs_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    x = np.array([[-1.0, 2.0]], np.float32)
    task = Task(tmp_path / "m.onnx", ["y"], {"x": x}, 0, on_gpu=True)
    monkeypatch.setitem(sys.modules, "migraphx", FakeMigraphx("migraphx"))
    (found,) = COMPETITORS["migraphx"](task)
    assert found.title == "MIGraphX"
    np.testing.assert_array_equal(found.results[0], [[0, 2]])
    found.run()


def test_migraphx_in_onnxruntime_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = "MIGraphXExecutionProvider"
    fake = ModuleType("onnxruntime")
    asked = SimpleNamespace(get_providers=lambda: [provider], run=lambda names, feeds: [feeds["x"]])
    monkeypatch.setattr(fake, "get_available_providers", lambda: [provider], raising=False)
    monkeypatch.setattr(fake, "InferenceSession", lambda model, providers: asked, raising=False)
    monkeypatch.setitem(sys.modules, "onnxruntime", fake)
    (found,) = COMPETITORS["migraphx"](Task(tmp_path, ["y"], {"x": np.ones(2, np.float32)}, 0, on_gpu=True))
    assert found.title == "MIGraphX in ONNX Runtime"


def test_migraphx_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(tmp_path, ["y"], {}, 0, on_gpu=False)
    with pytest.raises(ModelError, match="MIGraphX runs on AMD GPUs"):
        COMPETITORS["migraphx"](task)
    monkeypatch.setitem(sys.modules, "migraphx", None)
    with pytest.raises(ModelError, match="MIGraphX is not installed; install onnxruntime-migraphx, or ROCm's"):
        COMPETITORS["migraphx"](replace(task, on_gpu=True))
    broken = FakeMigraphx("migraphx")
    monkeypatch.setattr(broken, "parse_onnx", lambda path: 1 / 0, raising=False)
    monkeypatch.setitem(sys.modules, "migraphx", broken)
    with pytest.raises(ModelError, match="MIGraphX refuses the model: division by zero"):
        COMPETITORS["migraphx"](replace(task, on_gpu=True))
