"""Options that choose plans: timing, preferred engine, TF32, plans kept on disk; and what is told of devices and by their libraries."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Command
from hipdnn_mlir_runtime.cli.main import call
from hipdnn_mlir_runtime.errors import ModelError, ProgramError
from hipdnn_mlir_runtime.options import Settings, options_of
from hipdnn_mlir_runtime.session import session as session_module
from hipdnn_mlir_runtime.session.devices import list_devices, open_device
from hipdnn_mlir_runtime.session.options import SessionOptions, device_options
from hipdnn_mlir_runtime.session.session import Session
from runtime_programs import Array, ProgramText, convolution, relu_of_sum

SHAPE = (2, 3, 4, 5)


def weights() -> Array:
    """Return weights of a convolution."""
    return np.random.default_rng(0).standard_normal((16, 8, 3, 3), np.float32)


@pytest.fixture
def afresh() -> Callable[..., Session]:
    """Load a program as a new process does: on a device that has no plans."""

    def load(program: ProgramText, **options: Any) -> Session:
        open_device.cache_clear()
        return Session(program, port="host", threads=1, **options)

    return load


def check_values(session: Session) -> None:
    """Compare relu(a + b) with NumPy."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(SHAPE, np.float32) for _ in range(2))
    (y,) = session.run(None, {"a": a, "b": b})
    np.testing.assert_array_equal(y, np.maximum(a + b, 0))


@pytest.mark.parametrize(
    "options",
    [{"autotune": 3}, {"engine": "HOST_ROWWISE_ENGINE"}, {"tf32": True}, {"plan_cache": False}],
    ids=str,
)
def test_values_equal_numpy_when_plans_are_chosen(afresh: Callable[..., Session], options: SessionOptions) -> None:
    session = afresh(relu_of_sum(SHAPE), **options)
    check_values(session)
    assert {step["engine"] for step in session.steps} == {"HOST_ROWWISE_ENGINE"}


@pytest.mark.parametrize(
    ("compiled", "asked", "expected"),
    [(None, None, False), (True, None, True), (True, False, False), (False, True, True)],
)
def test_tf32_is_as_compiled_unless_asked(
    monkeypatch: pytest.MonkeyPatch, compiled: bool | None, asked: bool | None, expected: bool
) -> None:
    program = relu_of_sum(SHAPE)
    text = json.loads(program.text) | ({} if compiled is None else {"tf32": compiled})
    opened: list[Settings] = []
    monkeypatch.setattr(session_module, "open_device", lambda options: opened.append(options) or open_device(options))
    Session(ProgramText(text), tf32=asked)
    assert [options["tf32"] for options in opened] == [expected]


def test_error_when_the_program_s_tf32_is_no_boolean() -> None:
    text = json.loads(relu_of_sum(SHAPE).text) | {"tf32": 1}
    with pytest.raises(ProgramError, match=r"program\.tf32"):
        Session(ProgramText(text))


def test_engines_are_listed_when_the_preferred_one_is_unknown() -> None:
    with pytest.raises(
        ModelError,
        match=r"engine 'MIOPEN_ENGINE' is unknown: port 'host' has HOST_.*HOST_ONEDNN_ENGINE.*HOST_SDPA_ENGINE",
    ):
        Session(relu_of_sum(SHAPE), engine="MIOPEN_ENGINE")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"plugin_dirs": ["."]},
            r"port 'host' does not take them: .*it loads no plugins; AMD's library \(port 'hip'\)",
        ),
        ({"plugin_dirs": ["/no/such/folder"]}, r"'/no/such/folder' does not exist: expected a folder or a file"),
        ({"plugin_dirs": "/plugins"}, r"plugin_dirs: bad value: expected a list of paths, got '/plugins'"),
        (
            {"plugin_dirs": ["."], "plugin_mode": "only"},
            r"plugin_mode: bad value: expected one of 'additive', 'absolute', got 'only'",
        ),
        (
            {"plugin_mode": "absolute"},
            r"plugin_mode = 'absolute': expected folders or files of engine plugins.*name them with plugin_dirs",
        ),
        ({"knobs": {"TILE": 64}}, r"knobs are set for one engine, and none is named"),
        (
            {"engine": "HOST_ROWWISE_ENGINE", "knobs": ["TILE=64"]},
            r"knobs: bad value: expected a dict {\"NAME\": value}, got \['TILE=64'\]",
        ),
        ({"plugin_dirs": [""]}, r"plugin_dirs: bad value: expected a list of paths, got \[''\]"),
        ({"policies": 3}, r"policies: bad value: expected a list of texts, got 3"),
        ({"autotune": "3"}, r"autotune: bad value: expected a whole number from 0 to 1000, got '3'"),
        ({"autotune": -1}, r"autotune: bad value: expected a whole number from 0 to 1000, got -1"),
        ({"compare_plans": 1}, r"compare_plans: bad value: expected True or False, got 1"),
        ({"plan_cache": ""}, r"plan_cache: bad value: expected a path, True or False, got ''"),
        ({"max_specializations": 0}, r"max_specializations: bad value: expected a whole number from 1 to 65536, got 0"),
        ({"policies": ["A"]}, r"the hipDNN library of port 'host' \(.*\) has no policies to choose from"),
    ],
    ids=str,
)
def test_errors_say_what_is_wrong_with_plugins_and_policies(options: SessionOptions, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Session(relu_of_sum(SHAPE), **options)


def test_error_when_an_option_is_unknown() -> None:
    with pytest.raises(TypeError, match="unknown option 'treads': expected one of port, device, threads"):
        Session(relu_of_sum(SHAPE), treads=1)


OTHER = {
    "device": 3, "threads": 2, "graph_capture": True, "autotune": 4, "engine": "E", "knobs": {"TILE": 64, "FAST": True},
    "tf32": True, "plan_cache": "/plans", "compare_plans": False, "policies": ["A", "B"], "plugin_dirs": ["/p"],
    "plugin_mode": "absolute", "port": "cuda", "memory_limit_mb": 5,
}  # fmt: skip
"""A value of each option of a device, other than its default."""


def test_every_option_of_a_device_reaches_it() -> None:
    plain = device_options({}, "host", is_tf32=False)
    assert set(plain) == set(OTHER) == set(options_of("runtime"))
    for name, value in OTHER.items():
        made = device_options({name: value, "plan_cache": OTHER["plan_cache"]}, "host", is_tf32=False)
        assert made[name] != plain[name]
        assert made != plain
        assert hash(made) != hash(plain)
    assert device_options({"knobs": OTHER["knobs"]}, "host", is_tf32=False)["knobs"] == (("FAST", "1"), ("TILE", "64"))


def of_runtime(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Without what the library logs, for the whole process, once some session of it has asked for that."""
    return [record for record in caplog.records if record.name == "hipdnn_mlir.runtime"]


def test_choices_are_read_when_a_process_before_kept_them(
    afresh: Callable[..., Session], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "plans"
    first = afresh(convolution(weights()), plan_cache=folder, autotune=2)
    entries = {path: path.read_bytes() for path in folder.iterdir()}
    assert len(entries) == first.stats.plans
    again = afresh(convolution(weights()), plan_cache=folder)
    assert [step["engine"] for step in again.steps] == [step["engine"] for step in first.steps]
    assert {path: path.read_bytes() for path in folder.iterdir()} == entries
    assert of_runtime(caplog) == []


def test_a_line_is_logged_and_the_entry_replaced_when_it_is_damaged(
    afresh: Callable[..., Session], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    afresh(relu_of_sum(SHAPE), plan_cache=tmp_path)
    whole = {path: path.read_bytes() for path in tmp_path.iterdir()}
    broken = min(whole)
    broken.write_bytes(whole[broken][:-1])
    check_values(afresh(relu_of_sum(SHAPE), plan_cache=tmp_path))
    (record,) = of_runtime(caplog)
    assert record.levelno == logging.WARNING
    assert str(broken) in record.message
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == whole


def test_the_user_s_cache_folder_is_used_when_asked_for(
    afresh: Callable[..., Session], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for plan_cache in (None, False):
        check_values(afresh(relu_of_sum(SHAPE), plan_cache=plan_cache))
        assert list(tmp_path.iterdir()) == [], "plans of the host are cheap"
    check_values(afresh(relu_of_sum(SHAPE), plan_cache=True))
    assert len(list((tmp_path / "hipdnn-mlir" / "plans").iterdir())) == 2


def test_the_library_s_lines_reach_python_s_log_when_somebody_looks(
    afresh: Callable[..., Session], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "hipdnn_mlir.hipdnn"):
        afresh(relu_of_sum(SHAPE))
    lines = [record.message for record in caplog.records if record.name == "hipdnn_mlir.hipdnn"]
    assert any("plan for a graph of" in line and "rowwise" in line for line in lines), lines


def test_devices_are_listed_with_engines_or_a_reason() -> None:
    rows = list_devices()
    assert [row.port for row in rows if row.port == "host"] == ["host"]
    assert {row.port for row in rows} == {"host", "hip", "cuda"}
    for row in rows:
        assert bool(row.problem) != bool(row.engines), row
    host = next(row for row in rows if row.port == "host")
    assert ("HOST_ONEDNN_ENGINE", "hipdnn_host", host.library) in host.engines
    assert (host.target, host.ordinal) == ("host", 0)
    assert host.total_bytes is not None
    assert 0 < (host.free_bytes or 0) <= host.total_bytes


def test_command_lists_devices(command: Command) -> None:
    data = json.loads(command("devices", "--json").stdout)
    assert [row["target"] for row in data["devices"] if row["port"] == "host"] == ["host"]
    shown = command("devices")
    assert shown.returncode == 0, shown.stderr
    assert "HOST_ONEDNN_ENGINE" in shown.stdout


@pytest.mark.parametrize("action", ["run", "verify"])
def test_commands_record_graphs_when_asked(
    action: str, small_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[Settings] = []
    monkeypatch.setattr(session_module, "open_device", lambda options: opened.append(options) or open_device(options))
    for arguments in ([], ["--graph-capture"]):
        # The host has no graphs and runs step by step; the values are compared with ONNX Runtime's.
        compared = ["--compare", "ort", "--repeat", "3"] if action == "run" else []
        call([action, str(small_model), *compared, "--in-process", "--json", *arguments])
        rows = json.loads(capsys.readouterr().out)["differences" if action == "run" else "outputs"]
        assert rows
        assert all(row["within"] for row in rows)
    assert [options["graph_capture"] for options in opened] == [False, True]


def test_command_runs_with_plan_options(command: Command, program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plans"
    options = ["--autotune", 2, "--engine", "HOST_ONEDNN_ENGINE", "--tf32", "--plan-cache", folder]
    result = command("run", program, *options)
    assert result.returncode == 0, result.stderr
    assert any(folder.iterdir())
    result = command("run", program, "--engine", "MISSING_ENGINE")
    assert result.returncode == 2
    assert "HOST_ONEDNN_ENGINE" in result.stderr
    assert "Traceback" not in result.stderr
    result = command("run", program, "--engine", "HOST_ONEDNN_ENGINE", "--knob", "TILE=64")
    assert result.returncode == 0, result.stderr
    assert "has no knob 'TILE'" in result.stderr
    result = command("run", program, "--plugin-dir", tmp_path, "--plugin-mode", "absolute")
    assert result.returncode == 2
    assert "port 'host' does not take them" in result.stderr
    for arguments in (["run", program], ["devices"]):
        result = command(*arguments, "--plugin-mode", "absolute")
        assert result.returncode == 2
        assert "plugin_mode = 'absolute': expected folders or files" in result.stderr
