"""The command line on models with dynamic dimensions for GPUs: one file for all buckets, shown and refused in words."""

from __future__ import annotations

import json
from ctypes.util import find_library
from pathlib import Path

import onnx
import pytest

from bucket_models import SAFE, model
from conftest import Command
from generation.growing import growing_model
from hipdnn_mlir.compiler.specializations import compile_specializations

pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")


@pytest.fixture
def perceptron(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(SAFE["perceptron"][0], path)
    return path


@pytest.mark.skipif(find_library("cuda") is not None, reason="needs a machine without NVIDIA's driver")
def test_a_file_for_a_gpu_lists_its_buckets(command: Command, perceptron: Path, tmp_path: Path) -> None:
    made = command("compile", perceptron, "--target", "sm_90", "--bucket", "b=2,4", "-o", tmp_path / "m.hipdnn")
    assert made.returncode == 0, made.stderr
    assert "2 combinations of buckets, the largest: " in made.stdout
    shown = command("inspect", tmp_path / "m.hipdnn")
    assert shown.returncode == 0, shown.stderr
    for part in (
        "2 combinations of buckets",
        "b = 2",
        "b = 4:",
        "dynamic dimensions: b (rounded up to 2, 4)",
        "Not loaded",
    ):
        assert part in shown.stdout
    data = json.loads(command("inspect", tmp_path / "m.hipdnn", "--json").stdout)
    assert [row["sizes"] for row in data["specializations"]] == [{"b": 2}, {"b": 4}]
    assert data["steps"] == data["specializations"][1]["steps"]
    assert data["memory"]["constant_bytes"] == data["specializations"][0]["memory"]["constant_bytes"] > 0


def test_a_size_that_takes_its_buckets_alone_is_told(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model("g (float[b,8] x) => (float[1,8] y) <int64[1] a = {0}> { y = ReduceMean(x, a) }"), path)
    made = command("compile", path, "--target", "sm_90", "--bucket", "b=2,4", "-o", tmp_path / "m.hipdnn", "--json")
    assert made.returncode == 0, made.stderr
    assert "node 'ReduceMean_0'" in json.loads(made.stdout)["exact"]["b"]
    told = command("compile", path, "--target", "sm_90", "--bucket", "b=2,4", "-o", tmp_path / "m.hipdnn")
    reason = "padding would change results: node 'ReduceMean_0'"
    assert f"dimension 'b' has a program for each bucket and for no other size: {reason}" in " ".join(
        told.stdout.split()
    )
    shown = command("inspect", tmp_path / "m.hipdnn")
    assert f"b (2, 4 only: {reason}" in " ".join(shown.stdout.split())


def test_buckets_of_growing_caches_are_told_as_what_they_are(command: Command, tmp_path: Path) -> None:
    onnx.save(growing_model(layers=1), tmp_path / "m.onnx")
    options = ("--shape", "b=1", "--bucket", "s=2", "--bucket", "p=16")
    made = command("compile", tmp_path / "m.onnx", "--target", "sm_90", *options, "-o", tmp_path / "m.hipdnn")
    assert made.returncode == 0, made.stderr
    told = " ".join(made.stdout.split())
    assert "'p' has a program for each bucket and for no other size: it is the length of the caches' buffers" in told
    assert "'s' has a program for each bucket and for no other size: a run of fewer new rows is filled up" in told
    assert "padding" not in made.stdout + made.stderr


def test_random_inputs_have_sizes_that_run(command: Command, tmp_path: Path) -> None:
    """Of a size that is not rounded up the least bucket, and not 1."""
    proto = model("g (float[b,8] x) => (float[1,8] y) <int64[1] a = {0}> { y = ReduceMean(x, a) }")
    onnx.save(proto, tmp_path / "m.onnx")
    compile_specializations(proto, buckets={"b": [2, 4]}, target="host", precision="model").save(tmp_path / "m.hipdnn")
    done = command("run", tmp_path / "m.hipdnn", "--compare", "ort", "--reference", tmp_path / "m.onnx")
    assert done.returncode == 0, done.stderr
    between = command("run", tmp_path / "m.hipdnn", "--shape", "b=3")
    assert (between.returncode, between.stderr.count("\n")) == (2, 1)
    assert "3 is none of the buckets 2, 4" in between.stderr


def test_explain_shows_the_largest_buckets(command: Command, perceptron: Path) -> None:
    shown = command("explain", perceptron, "--target", "sm_90", "--bucket", "b=2,4")
    assert shown.returncode == 0, shown.stderr
    assert "Dynamic dimensions are shown at b = 4." in shown.stdout


def test_verify_takes_buckets(command: Command, perceptron: Path) -> None:
    done = command("verify", perceptron, "--bucket", "b=2,4", "--shape", "b=?", "--json")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "code for sm_90 is made for exact sizes, but these dimensions of the model are dynamic: b; "
             "list the sizes to compile for with --bucket b=1,8,32"),
        (["--bucket", "n=1"], "no dynamic dimension named 'n'"),
        (["--bucket", f"b={','.join(map(str, range(1, 67)))}"],
         "too many combinations of buckets: expected at most 64 (code is made for each), got 66"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_buckets_is_one_line(
    command: Command, perceptron: Path, options: list[str], message: str
) -> None:
    result = command("compile", perceptron, "--target", "sm_90", "--in-process", *options)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
    assert message in result.stderr
