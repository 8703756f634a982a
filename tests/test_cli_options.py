"""Every option of every command acts or is an error; the options are those of the table, so that a new one is among them."""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

import hipdnn_mlir
from conftest import Command
from hipdnn_mlir.cli import commands, opt
from hipdnn_mlir.service.request import Request
from hipdnn_mlir_runtime.cli import bench
from hipdnn_mlir_runtime.cli import main as cli
from hipdnn_mlir_runtime.cli.bench import Benchmark, summarized
from hipdnn_mlir_runtime.cli.options import read
from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.options import Option, Settings, options_of
from hipdnn_mlir_runtime.session import recovery
from hipdnn_mlir_runtime.session import session as session_module
from hipdnn_mlir_runtime.session.devices import list_devices, open_device
from hipdnn_mlir_runtime.session.profiling.profile import profile
from hipdnn_mlir_runtime.session.source import read as read_program
from models import GraphBuilder

VALUES = {
    "inputs": "x=x.npy", "ranges": "x=0:1", "output": "out", "compare": "ort", "reference": "m.onnx", "rtol": "0.5", "atol": "0.5",
    "repeat": "2", "threads": "1", "seed": "5", "target": "nonsense", "precision": "bf16", "shapes": "x=2x512", "buckets": "n=1,2",
    "autotune": "2", "engine": "HOST_ONEDNN_ENGINE", "knobs": "TILE=64", "device": "3", "plan_cache": "plans", "policies": "FIRST",
    "plugin_dirs": "plugins", "plugin_mode": "absolute", "compile_timeout_s": "7", "extensions": "no", "against": "ort", "warmup": "7",
    "duration": "8", "batch": "9", "sort": "bytes", "trace": "t.json", "html": "page.html", "netron": "n.onnx",
    "tolerance": "1e-30", "dump_ir": "ir", "page_rows": "16", "last_valid": "y=x", "memory_limit_mb": "5", "trusted_key": "key.pem",
}  # fmt: skip
"""A value of each option that is no flag, other than its default."""


@dataclass
class Observed:
    """What one call of the command did: all that an option can change."""

    status: int
    printed: str
    errors: str
    files: list[str]
    devices: list[Any]
    requests: list[Any]


Observe = Callable[..., Observed]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, its program, and an input."""
    folder = tmp_path_factory.mktemp("made")
    b = GraphBuilder("m")
    # A softmax is rounded otherwise than ONNX Runtime's on every processor, so that errors show which inputs were drawn.
    y = b.op("Softmax", b.op("MatMul", b.input("x", [1, 512]), b.normal([512, 64], 0.1)))
    onnx.save(b.model({y: [1, 64]}), folder / "m.onnx")
    hipdnn_mlir.compile(folder / "m.onnx").save(folder / "m.hipdnn")
    np.save(folder / "x.npy", np.full((1, 512), 3, np.float32))
    return folder


@pytest.fixture(scope="module")
def explanation(made: Path) -> dict[str, Any]:
    return hipdnn_mlir.explain(made / "m.onnx").to_dict()


@pytest.fixture
def observe(
    made: Path,
    explanation: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Observe:
    """Run the command here beside ``m.onnx``, its program ``m.hipdnn`` and ``x.npy``; what would be compiled is noted."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    (tmp_path / "plugins").mkdir()
    compiled = (tmp_path / "m.hipdnn").read_bytes()
    requests: list[Any] = []
    devices: list[Any] = []

    def perform(request: Request, *, on_progress: object = None, **how: Any) -> dict[str, Any]:
        requests.append((replace(request, output=None), how))
        if request.output is not None:
            Path(request.output).write_bytes(compiled)
        return copy.deepcopy(explanation) if request.action == "explain" else {}

    def benchmark(program: Path, inputs: Any, **how: Any) -> Benchmark:
        """Times differ from call to call: what is to be measured is looked at."""
        devices.append((inputs, how))
        return summarized({"ours": [[1.0]]}, 1)

    def profiled(session: Any, feeds: Any, *, repeat: int) -> SimpleNamespace:
        found = profile(session, feeds, warmup=0, repeat=1)
        told = [repeat, *(float(array.sum()) for array in feeds.values())]
        return SimpleNamespace(
            steps=found.steps,
            lines=lambda sort, line: [f"{sort} {told}"],
            to_dict=lambda: {"told": told},
            write_trace=lambda path: path.write_text("{}"),
        )

    def opened(options: Settings) -> Any:
        devices.append(options)
        return open_device(options)

    def read(source: Any, *, allow_code: bool, trusted_key: str | None) -> Any:
        """What it does is seen in programs that hold code (tests/test_program_trust.py), and in signed ones (tests/test_signatures.py)."""
        devices.append((allow_code, trusted_key))
        return read_program(source, allow_code=allow_code, trusted_key=None)

    monkeypatch.setattr(commands, "perform_in_child", perform)
    monkeypatch.setattr(session_module, "read", read)
    monkeypatch.setattr(commands, "perform_here", perform)
    monkeypatch.setattr(bench, "benchmark", benchmark)
    monkeypatch.setattr("hipdnn_mlir_runtime.session.profiling.profile.profile", profiled)
    monkeypatch.setattr(session_module, "open_device", opened)
    monkeypatch.setattr(recovery, "open_device", opened)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Observed:
        before = set(tmp_path.iterdir())
        requests.clear()
        devices.clear()
        status = cli.call(arguments)
        printed = capsys.readouterr()
        made = set(tmp_path.iterdir()) - before
        for path in made:
            path.rename(tmp_path / "plugins" / path.name)
        text = re.sub(r'in [0-9.]+ s|"elapsed_s": [0-9.]+|[0-9.]+ [KMG]iB of|"free_bytes": [0-9]+', "", printed.out)
        return Observed(status, text, printed.err, sorted(path.name for path in made), [*devices], [*requests])

    return run


SUBJECTS = {
    "run program": ["run", "m.hipdnn"],
    "run model": ["run", "m.onnx"],
    "compile": ["compile", "m.onnx"],
    "explain": ["explain", "m.onnx"],
    "verify": ["verify", "m.onnx"],
    "bench": ["bench", "m.onnx"],
    "profile": ["profile", "m.hipdnn"],
    "inspect": ["inspect", "m.hipdnn"],
    "diff": ["diff", "m.hipdnn", "m.hipdnn"],
    "devices": ["devices"],
    "doctor": ["doctor"],
}


COMMANDS = [command.name for command in cli.all_commands()]


def flag_of(option: Option) -> str:
    """Return the name of an option, with which a flag is other than by default."""
    return f"--no-{option.flags[0][2:]}" if option.default is True else option.flags[0]


def test_every_command_is_looked_at() -> None:
    """But for those of the cache: what they delete and find differs from call to call (tests/ort_ep/test_cache_commands.py).

    And for `generate`, which takes a folder (tests/generation/test_generate_command.py), `quantize` (tests/test_quantize_command.py),
    `serve` (tests/serving) and `sign` (tests/test_signatures.py).
    """
    elsewhere = {name for name in COMMANDS if name.startswith("cache ")} | {"generate", "quantize", "serve", "sign"}
    assert {arguments[0] for arguments in SUBJECTS.values()} == set(COMMANDS) - elsewhere


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_option_acts_or_is_an_error(observe: Observe, subject: str) -> None:
    arguments = SUBJECTS[subject]
    plain = observe(*arguments)
    assert plain.status == 0, plain.errors
    assert observe(*arguments) == plain, "what is observed repeats itself"
    ignored = []
    for option in options_of(arguments[0]).values():
        value = [] if option.type == "flag" else [VALUES[option.name]]
        seen = observe(*arguments, flag_of(option), *value)
        if seen.status == 2:
            assert (seen.printed, seen.errors.count("\n")) == ("", 1), seen.errors
        elif seen == plain:
            ignored.append(option.name)
    assert ignored == []


@pytest.mark.parametrize(
    "option", [row for row in options_of("run").values() if "model" in row.needs], ids=lambda row: row.name
)
def test_options_of_compiling_are_refused_for_a_program_file(observe: Observe, option: Option) -> None:
    """Whatever their value, their default included."""
    for value in dict.fromkeys((option.default or VALUES.get(option.name), VALUES.get(option.name))):
        seen = observe("run", "m.hipdnn", option.flags[0], *([] if option.type == "flag" else [str(value)]))
        assert seen.status == 2
        what = f"{option.flags[0]}: an option of compiling, and m.hipdnn is compiled already; compile the model with it"
        assert what in seen.errors
        assert not seen.devices


def test_all_options_without_effect_are_named(observe: Observe) -> None:
    seen = observe(
        "run", "m.hipdnn", "--shape", "x=1x512", "--target", "nonsense", "--precision", "bf16", "--in-process"
    )
    assert "--target, --precision, --in-process: options of compiling, and m.hipdnn is compiled already" in seen.errors
    assert "compile the model with them" in seen.errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "m.hipdnn", "--rtol", "1"], "--rtol: an option of a comparison, and nothing is compared; add --compare ort"),
        (["run", "m.onnx", "--reference", "m.onnx", "--atol", "1"], "--reference, --atol: options of a comparison"),
        *(
            ([action, "m.onnx", "--in-process", "--timeout", "9"], "--timeout: an option of the compiler's child process")
            for action in ("compile", "run", "explain", "verify")
        ),
        *(([action, "m.hipdnn"], "compiled already; hipdnn-mlir inspect") for action in ("compile", "explain", "verify")),
        (["compile", "m.onnx", "--timeout", "0"], "--timeout: bad value: expected a whole number from 1 to 86400, got 0"),
        (["compile", "m.onnx", "--timeout", "nan"], "--timeout: bad value: expected a whole number from 1 to 86400, got 'nan'"),
        (["compile", "m.onnx", "--precision", "f8"], "--precision: bad value: expected one of 'model', 'tf32', 'f16', 'bf16', got 'f8'"),
        (["run", "m.onnx", "--autotune", "-1"], "--autotune: bad value: expected a whole number from 0 to 1000, got -1"),
        (["devices", "--plugin-mode", "only"], "--plugin-mode: bad value: expected one of 'additive', 'absolute', got 'only'"),
        (["run", "m.hipdnn", "--seed", "1", "--input", "x=x.npy"], "--seed: no input is random; leave it out"),
        (["run", "m.hipdnn", "--input", "x=x.npy", "--input", "x=y.npy"], "--input: two values for 'x'"),
        (["run", "m.onnx", "--shape", "x=1x512", "--shape", "x=2x512"], "--shape: two values for 'x'"),
        (["run", "m.hipdnn", "--engine", "E", "--knob", "A=1", "--knob", "A=2"], "--knob: two values for 'A'"),
        (["run", "m.hipdnn", "--shape", "x=?,512"], "--shape: a program runs with numbers for its dimensions: expected numbers, got '?'"),
        (["run", "m.hipdnn", "--policy", "FIRST"], "--policy: the hipDNN library of port 'host'"),
        (["run", "m.hipdnn", "--plugin-dir", "/none"], "--plugin-dir: '/none' does not exist"),
        (["run", "m.hipdnn", "--device", "3"], "device 3 does not exist: 1 found, numbered from 0"),
        (["devices", "--plugin-dir", "plugins"], "--plugin-dir: no port here loads plugins; port 'hip': cannot open"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_what_has_no_effect_is_one_line(observe: Observe, arguments: list[str], message: str) -> None:
    if arguments[0] == "devices" and any(row.port == "hip" and not row.problem for row in list_devices()):
        pytest.skip("needs a machine without AMD's libraries")
    seen = observe(*arguments)
    assert (seen.status, seen.printed, seen.errors.count("\n")) == (2, "", 1), seen.errors
    assert message in seen.errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--input", "x=x.npy", "--shape", "n=2"], "dimension 0 of input 'x' cannot be 2, its file or another --shape makes it 1"),
        (["--input", "x=x.npy", "--shape", "x=3x512"], "dimension 0 of input 'x' cannot be 3"),
        (["--shape", "x=3x512", "--shape", "n=2"], "dimension 0 of input 'x' cannot be 3"),
    ],
)  # fmt: skip
def test_sizes_that_an_input_does_not_get_are_an_error(observe: Observe, options: list[str], message: str) -> None:
    b = GraphBuilder("open")
    hipdnn_mlir.compile(b.model({b.op("Relu", b.input("x", ["n", 512])): ["n", 512]})).save("open.hipdnn")
    assert observe("run", "open.hipdnn", "--input", "x=x.npy", "--shape", "n=1").status == 0
    seen = observe("run", "open.hipdnn", *options)
    assert (seen.status, seen.printed) == (2, "")
    assert message in seen.errors


@pytest.mark.parametrize("options", [[], ["--in-process"]], ids=["child", "here"])
def test_verbose_shows_what_the_compiler_says(command: Command, tmp_path: Path, options: list[str]) -> None:
    b = GraphBuilder("old", opset=11)
    onnx.save(b.model({b.op("Relu", b.input("x", [4])): [4]}), tmp_path / "old.onnx")
    done = command("--verbose", "explain", tmp_path / "old.onnx", *options)
    assert done.returncode == 0, done.stderr
    assert "upgrading from opset 11" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cse", "--pass-pipeline=canonicalize"], "--cse: passes beside --pass-pipeline"),
        (["--cse", "--verify-diagnostics", "-o", "out.mlir"], "-o: --verify-diagnostics prints no module"),
        (["--cse", "--verify-diagnostics", "--mlir-print-debuginfo"], "--mlir-print-debuginfo: --verify-diagnostics prints"),
    ],
)  # fmt: skip
def test_hipdnn_opt_refuses_options_without_effect(
    options: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text("module {}")
    assert opt.main(["m.mlir", *options]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["m.mlir"]


def test_lists_are_given_with_commas_or_one_by_one() -> None:
    for name, command in (("against", "bench"), ("target", "explain")):
        row = options_of(command)[name]
        values = ["ort", "torch"] if row.choices else ["host", "gfx942"]
        assert read(row, [",".join(values)]) == read(row, [*values, values[0]]) == values
    with pytest.raises(
        ModelError, match="--against: bad value: expected one of 'ort', 'openvino', 'torch', 'migraphx', got 'no'"
    ):
        read(options_of("bench")["against"], ["ort,no"])
