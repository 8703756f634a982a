"""`hipdnn-mlir doctor` and `hipdnn-mlir diff`: what they find, and what they call a problem."""

from __future__ import annotations

import json
import shutil
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import onnx
import pytest

import hipdnn_mlir
from conftest import Command
from hipdnn_mlir.codegen.core import link, lower
from hipdnn_mlir_runtime.cli import command as command_module
from hipdnn_mlir_runtime.cli import doctor, main
from models import GraphBuilder


def model(*, scale: float = 1.0, act: str = "Relu") -> onnx.ModelProto:
    b = GraphBuilder("m")
    weights = b.constant(scale * np.arange(32).reshape(8, 4), np.float32)
    return b.model({b.op(act, b.op("MatMul", b.input("x", ["n", 8]), weights)): ["n", 4]})


def test_doctor_tells_what_is_here(command: Command) -> None:
    done = command("doctor", "--json")
    data = json.loads(done.stdout)
    assert done.returncode == (1 if data["problems"] else 0)
    by_topic = {finding["topic"]: finding for finding in data["findings"]}
    assert {"python", "packages", "cpu", "host:0", "libraries", "cache"} <= set(by_topic)
    assert "hipdnn-mlir-runtime 0.1.0" in by_topic["packages"]["text"]
    assert "libhipdnn_host.so" in by_topic["libraries"]["text"]
    text = command("doctor").stdout
    assert "host:0" in text
    assert "\x1b" not in text


def test_doctor_finds_versions_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"hipdnn-mlir": "0.2.0", "hipdnn-mlir-runtime": "0.1.0", "onnxruntime": "1.23.1"}
    monkeypatch.setattr(doctor, "version_of", lambda name: versions.get(name, ""))
    found = doctor.diagnose()
    fixes = [finding.fix for finding in found.findings if finding.status == "problem"]
    assert "pip install hipdnn-mlir-runtime==0.2.0" in fixes
    assert "pip install 'onnxruntime>=1.24'" in fixes
    assert "problems" in str(found)


def test_doctor_finds_a_compiler_that_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("compiler", "hipdnn_mlir.nowhere:commands", doctor.GROUP)
    monkeypatch.setattr(doctor.importlib.metadata, "entry_points", lambda group: [point])
    (finding,) = [f for f in doctor.diagnose().findings if f.topic == "compiler"]
    assert finding.status == "problem"
    assert "hipdnn_mlir.nowhere" in finding.text


def test_commands_say_so_where_the_compiler_does_not_load(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    point = EntryPoint("compiler", "hipdnn_mlir.nowhere:commands", doctor.GROUP)
    monkeypatch.setattr(command_module, "entry_points", lambda group: [point])
    assert main.call(["compile", "m.onnx"]) == 2
    assert (
        "the compiler cannot be imported: ModuleNotFoundError: No module named 'hipdnn_mlir.nowhere'"
        in capsys.readouterr().err
    )
    assert main.call(["devices"]) == 0


def test_doctor_finds_a_home_without_a_cache(command: Command) -> None:
    done = command("doctor", env={"HOME": "", "XDG_CACHE_HOME": ""})
    assert done.returncode == 1
    assert "there is no folder for compiled models and plans; set HOME or XDG_CACHE_HOME" in done.stdout


def test_doctor_finds_a_cache_that_is_not_to_be_trusted(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "hipdnn-mlir"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    done = command("doctor", env={"XDG_CACHE_HOME": str(tmp_path / "home")})
    assert done.returncode == 1
    assert f"{folder}: everyone may write to it" in done.stdout


def test_doctor_finds_a_cache_that_cannot_be_made(command: Command) -> None:
    done = command("doctor", "--json", env={"XDG_CACHE_HOME": "/proc/nope"})
    findings = [f for f in json.loads(done.stdout)["findings"] if (f["topic"], f["status"]) == ("cache", "problem")]
    assert done.returncode == 1
    assert [finding["text"][:27] for finding in findings] == ["/proc cannot be written (No"]


def test_doctor_finds_extensions_that_cannot_be_imported(command: Command) -> None:
    done = command("doctor", "--json", env={"HIPDNN_MLIR_EXTENSIONS": "no_such_module"})
    (finding,) = [f for f in json.loads(done.stdout)["findings"] if f["topic"] == "extensions"]
    assert (done.returncode, finding["status"]) == (1, "problem")
    assert "no_such_module" in finding["text"]
    assert "HIPDNN_MLIR_EXTENSIONS" in finding["fix"]


def test_doctor_tells_what_to_do_apart_from_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = "cannot open libx.so (libx.so: no such file; /lib/libx.so: no such file); install x"
    rows = [doctor.DeviceInfo("hip", problem=problem), doctor.DeviceInfo("cuda", problem="a (b; c)")]
    monkeypatch.setattr(doctor, "list_devices", lambda: rows)
    found = [(f.text, f.fix) for f in doctor.diagnose().findings if f.topic in ("hip", "cuda")]
    assert found[:1] == [("cannot open libx.so (libx.so: no such file; /lib/libx.so: no such file)", "install x")]
    assert ("a (b; c)", "") in found


def test_doctor_tells_of_gpus_that_no_target_is_of(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [doctor.DeviceInfo("hip", ordinal=i, target=name) for i, name in enumerate(("gfx942", "gfx1036"))]
    monkeypatch.setattr(doctor, "list_devices", lambda: rows)
    notes = [f for f in doctor.diagnose().findings if f.status == "note" and f.topic.startswith("hip:")]
    assert [(note.topic, note.text[:24]) for note in notes] == [("hip:1", "unknown target 'gfx1036'")]
    assert notes[0].fix.startswith("there is no code for gfx1036: run on the CPU")


def test_doctor_finds_what_compiling_for_gpus_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    lower._llvm.cache_clear()
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setattr(link, "find_linker", lambda: None)
    found = [finding for finding in doctor.diagnose().findings if finding.topic == "compiler"]
    assert [(finding.status, finding.fix) for finding in found] == [
        ("note", "pip install llvmlite"),
        ("note", "pip install ziglang"),
    ]
    assert "code for GPUs is compiled with llvmlite, which is not installed" in found[0].text
    assert "code for AMD GPUs is linked with LLVM's ld.lld, which was not found" in found[1].text


def test_doctor_says_how_many_cpus_a_container_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_read", lambda path: "50000 100000\n" if path.endswith("cpu.max") else "")
    (finding,) = [f for f in doctor.diagnose().findings if f.fix.startswith("--threads")]
    assert "0.5 CPUs" in finding.text
    assert finding.fix.startswith("--threads 1")


def test_doctor_tells_of_amds_part_alone(command: Command) -> None:
    done = command("doctor", "--amd", "--json", env={"HIPDNN_LOG_LEVEL": "off", "MIOPEN_USER_DB_PATH": "/home/me"})
    found = json.loads(done.stdout)["findings"]
    assert {"python", "packages", "driver", "HIP", "hipDNN"} <= {finding["topic"] for finding in found}
    assert "cache" not in {finding["topic"] for finding in found}
    assert [f["text"] for f in found if f["topic"] == "environment"] == ["HIPDNN_LOG_LEVEL=off"]


def test_equal_programs_have_no_difference(command: Command, program: Path, tmp_path: Path) -> None:
    shutil.copy(program, tmp_path / "copy.hipdnn")
    done = command("diff", program, tmp_path / "copy.hipdnn", "--json")
    assert (done.returncode, json.loads(done.stdout)["equal"]) == (0, True)
    assert "The programs do the same" in command("diff", program, tmp_path / "copy.hipdnn").stdout


@pytest.mark.parametrize(
    ("other", "fields", "signs", "weights"),
    [
        (model(scale=2), {"model"}, "", {"other values"}),
        (model(act="Sigmoid"), {"model", "outputs"}, "-+", set()),
    ],
    ids=["weights", "steps"],
)
def test_what_differs_is_told(
    command: Command, tmp_path: Path, other: onnx.ModelProto, fields: set[str], signs: str, weights: set[str]
) -> None:
    for name, made in (("a", model()), ("b", other)):
        onnx.save(made, tmp_path / f"{name}.onnx")
        hipdnn_mlir.compile(tmp_path / f"{name}.onnx").save(tmp_path / f"{name}.hipdnn")
    done = command("diff", tmp_path / "a.hipdnn", tmp_path / "b.hipdnn", "--json")
    assert done.returncode == 1, done.stderr
    data = json.loads(done.stdout)
    assert set(data["fields"]) == fields
    assert "".join(step["sign"] for step in data["steps"]) == signs
    assert set(data["weights"].values()) == weights
    assert command("diff", tmp_path / "a.hipdnn", tmp_path / "b.hipdnn").stdout.count("\n") > 3


def test_a_precision_changes_dtypes_of_weights_and_steps(command: Command, tmp_path: Path) -> None:
    hipdnn_mlir.compile(model()).save(tmp_path / "a.hipdnn")
    hipdnn_mlir.compile(model(), precision="bf16").save(tmp_path / "b.hipdnn")
    data = json.loads(command("diff", tmp_path / "a.hipdnn", tmp_path / "b.hipdnn", "--json").stdout)
    assert any("BF16" in text or "in the second only" in text for text in data["weights"].values())
    assert data["steps"]


def test_diff_refuses_what_is_no_program(command: Command, program: Path, small_model: Path) -> None:
    done = command("diff", program, small_model)
    assert (done.returncode, done.stdout) == (2, "")
    assert "an ONNX model" in done.stderr
