"""Compilation in a child process: whatever happens to the child, the caller gets an error and a reproducer."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from onnx import helper, parser

from hipdnn_mlir.cli.commands import write_page
from hipdnn_mlir.compiler.compile import compile as compile_model
from hipdnn_mlir.service.child import perform_in_child
from hipdnn_mlir.service.request import Request
from hipdnn_mlir_runtime.errors import HipdnnMlirError, MachineError, ModelError, PassError, UnsupportedError

_SABOTAGE = """
import os, sys, time
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch_mlir" and "hipdnn_mlir.service.server" in sys.orig_argv:
            {action}
sys.meta_path.insert(0, Finder())
"""
"""Runs in every child at start-up: the first import of the library under the compiler does ``action``."""


@pytest.fixture
def sabotage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that makes children do something when they load torch-mlir."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def apply(action: str) -> None:
        directory = tmp_path / "startup"
        directory.mkdir()
        (directory / "sitecustomize.py").write_text(_SABOTAGE.format(action=action))
        monkeypatch.setenv("PYTHONPATH", str(directory))

    return apply


def compile_failing(model: Path, output: Path, timeout_s: float = 60) -> PassError:
    with pytest.raises(PassError) as caught:
        perform_in_child(Request.to_compile(model, output), timeout_s=timeout_s)
    assert not output.exists()
    error = caught.value
    assert error.exit_code == 3
    assert error.reproducer is not None
    assert str(error.reproducer) in str(error)
    return error


def test_child_death_is_a_pass_error_when_it_aborts(small_model: Path, tmp_path: Path, sabotage) -> None:
    sabotage("os.write(2, b'assertion failed'); os.abort()")
    error = compile_failing(small_model, tmp_path / "x.hipdnn")
    assert "SIGABRT" in str(error)
    assert "assertion failed" in error.detail


def test_child_end_is_a_pass_error_when_it_exits_without_a_reply(small_model: Path, tmp_path: Path, sabotage) -> None:
    sabotage("os._exit(7)")
    assert "status 7" in str(compile_failing(small_model, tmp_path / "x.hipdnn"))


def test_child_is_stopped_when_it_hangs(small_model: Path, tmp_path: Path, sabotage) -> None:
    sabotage("time.sleep(600)")
    assert "no answer within 2 s" in str(compile_failing(small_model, tmp_path / "x.hipdnn", timeout_s=2))


def test_child_that_says_something_now_and_then_is_waited_for(small_model: Path, tmp_path: Path, sabotage) -> None:
    say = "logging.getLogger('hipdnn_mlir').info('on it')"
    sabotage(f"import logging; [({say}, time.sleep(3)) for _ in range(5)]; os._exit(7)")
    assert "status 7" in str(compile_failing(small_model, tmp_path / "x.hipdnn", timeout_s=12))


def test_stray_exception_is_a_pass_error_when_the_compiler_has_a_bug(
    small_model: Path, tmp_path: Path, sabotage
) -> None:
    sabotage("raise ZeroDivisionError('by accident')")
    error = compile_failing(small_model, tmp_path / "x.hipdnn")
    assert "ZeroDivisionError: by accident" in str(error)
    assert "Traceback" in error.detail


def test_reproducer_holds_model_and_command_when_a_child_dies(small_model: Path, tmp_path: Path, sabotage) -> None:
    sabotage("os.abort()")
    directory = compile_failing(small_model, tmp_path / "x.hipdnn").reproducer
    assert directory is not None
    assert (directory / "model.onnx").read_bytes() == small_model.read_bytes()
    assert (directory / "command.txt").read_text().startswith("hipdnn-mlir compile model.onnx --in-process")
    request = Request(**json.loads((directory / "request.json").read_text()))
    assert request == Request.to_compile(small_model, tmp_path / "x.hipdnn")


def test_error_keeps_its_class_when_raised_in_the_child(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nowhere\.onnx"):
        perform_in_child(Request.to_compile(tmp_path / "nowhere.onnx", tmp_path / "x.hipdnn"))


def test_explanation_is_plain_data_when_asked_of_a_child(small_model: Path) -> None:
    data = perform_in_child(Request.to_explain(small_model))
    assert data["graphs"]
    assert json.loads(json.dumps(data)) == data


def test_page_is_an_error_when_its_compilation_dies(
    small_model: Path, small_program: Path, tmp_path: Path, sabotage
) -> None:
    sabotage("os.abort()")
    with pytest.raises(PassError, match="SIGABRT"):
        write_page(small_program, tmp_path / "p.html", sizes={}, reference=small_model)


def test_caller_uses_nothing_from_its_directory_when_it_starts_a_child(
    small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "onnx.py").write_text("raise SystemExit('the wrong onnx')")
    monkeypatch.chdir(tmp_path)
    perform_in_child(Request.to_compile(small_model, tmp_path / "x.hipdnn"))
    assert (tmp_path / "x.hipdnn").is_file()


B = 1 << 31
GREEDY = {
    "axes of a length that is only declared": (
        f"(float[2,3] x, int64[{2 * B}] a) => (float[2,3] y) {{ y = ReduceLogSumExp(x, a) }}",
        UnsupportedError,
        "its axes are not known at compile time",
    ),
    "filled": (
        f"(float[1] x) => (float[1, {B}] y) <int64[2] s = {{1, {B}}}> {{ c = ConstantOfShape(s) y = Add(c, x) }}",
        ModelError,
        "constants of one number everywhere take",
    ),
    "expanded": (
        f"(float[1] x) => (float[1, {B}] y) <int64[2] s = {{1, {B}}}, float[1] v = {{2}}> {{ c = Expand(v, s) y = Add(c, x) }}",
        ModelError,
        "constants of one number everywhere take",
    ),
    "propagated by onnx's inference": (
        f"(float[1] x) => (float[{B}] y) <int64[1] s = {{{B}}}> {{ c = ConstantOfShape(s) y = Add(c, x) }}",
        MachineError,
        "takes more memory than the compiler may use",
    ),
}


@pytest.mark.parametrize("kind", GREEDY)
def test_model_of_a_few_bytes_takes_little_memory(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, error, words = GREEDY[kind]
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 21]> g {text}')
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, hard))  # of this process too, which starts the child
    try:
        with pytest.raises(error, match=words):
            perform_in_child(Request.to_compile(tmp_path / "m.onnx", tmp_path / "x.hipdnn"))
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    assert not (tmp_path / "x.hipdnn").exists()


DOUBLING = {
    "Concat": "Concat<axis = 0>(c{0}, c{0})",
    "Tile": "Tile(c{0}, two)",
    "Pad": "Pad(c{0}, p{0})",
    "Expand": "Expand(c{0}, s{0})",
}


@pytest.mark.parametrize("operator", DOUBLING)
def test_constant_that_is_doubled_again_and_again_takes_little_memory(operator: str) -> None:
    levels = range(40)
    nodes = " ".join(f"c{i + 1} = {DOUBLING[operator].format(i)}" for i in levels)
    numbers = {"Pad": [f"int64[2] p{i} = {{0, {64 << i}}}" for i in levels]}
    numbers["Expand"] = [f"int64[{i + 2}] s{i} = {{{'2, ' * (i + 1)}64}}" for i in levels]
    first = f"float[64] c0 = {{{', '.join(map(str, range(64)))}}}, int64[1] two = {{2}}"
    constants = ", ".join([first, *numbers.get(operator, ())])
    graph = f"(float[1] x) => (float[1] y) <{constants}> {{ {nodes} m = ReduceMax<keepdims = 0>(c{len(levels)}) y = Add(x, m) }}"
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {graph}')
    held = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData"))
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, ((int(held.split()[1]) << 10) + (1 << 30), hard))
    try:
        with pytest.raises(ModelError, match=r"is too large: expected at most 2\^40 elements"):
            compile_model(proto)
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def test_memory_of_a_child_has_a_limit(small_model: Path, tmp_path: Path, sabotage) -> None:
    sabotage("import resource; os.write(2, b'%d' % resource.getrlimit(resource.RLIMIT_DATA)[0]); os._exit(7)")
    limit = int(compile_failing(small_model, tmp_path / "x.hipdnn").detail)
    assert 0 < limit <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def test_child_whose_libraries_find_no_address_space_is_no_defect(small_model: Path, tmp_path: Path, sabotage) -> None:
    sabotage("import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))")
    with pytest.raises(MachineError, match="takes more memory than the compiler may use"):
        perform_in_child(Request.to_compile(small_model, tmp_path / "x.hipdnn"))
    assert not (tmp_path / "x.hipdnn").exists()


def failure_of(request: Request) -> Exception | None:
    try:
        perform_in_child(request)
    except (HipdnnMlirError, OSError) as error:
        return error
    return None


SYSTEM_CALLS = ("os.memfd_create", "socket.socketpair", "os.pipe", "subprocess._fork_exec")


def test_system_that_refuses_any_call_that_starts_a_process_is_no_defect(
    small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The N-th of these calls fails, for N = 1, 2, ... until none does."""
    (tmp_path / "out").mkdir()
    output = tmp_path / "out" / "x.hipdnn"
    before = len(list(Path("/proc/self/fd").iterdir()))
    refused: list[str] = []
    while not output.exists():
        left = len(refused)
        with monkeypatch.context() as patch:
            for name in SYSTEM_CALLS:
                module, function = name.split(".")
                real = getattr(sys.modules[module], function)

                def refusing(*arguments: Any, _name: str = name, _real: Any = real, **options: Any) -> Any:
                    nonlocal left
                    left -= 1
                    if left == -1:
                        refused.append(_name)
                        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
                    return _real(*arguments, **options)

                patch.setattr(name, refusing)
            error = failure_of(Request.to_compile(small_model, output))
        assert not isinstance(error, PassError)
        assert error is None or "Resource temporarily unavailable" in str(error)
        assert len(list(Path("/proc/self/fd").iterdir())) == before
        assert output.exists() or list(output.parent.iterdir()) == []
    assert set(refused) == set(SYSTEM_CALLS)


@pytest.mark.parametrize("words", ["std::bad_alloc", "LLVM ERROR: out of memory", "MemoryError"])
def test_child_that_dies_for_want_of_memory_is_no_defect(
    words: str, small_model: Path, tmp_path: Path, sabotage
) -> None:
    sabotage(f"os.write(2, b'{words}'); os.abort()")
    with pytest.raises(MachineError, match="takes more memory than the compiler may use"):
        perform_in_child(Request.to_compile(small_model, tmp_path / "x.hipdnn"))


DEADLY = {
    "Unique": "(float[6] x) => (float[6] y) { y = Unique<axis = 0>(x) }",
    "ReduceLogSumExp": "(float[2,3] x, int64[1] a) => (float[2,3] y) { y = ReduceLogSumExp(x, a) }",
    "ReduceSum": "(float[2,2] x, int64[1] a) => (float[2] y) { y = ReduceSum<keepdims = 0>(x, a) }",
    "LayerNormalization": "(float[2,3] x, float[3] s) => (float[2,3] y) { y = LayerNormalization<axis = 100>(x, s) }",
    "ReduceMean": "(float[2,2] x) => (float[1,2] y) <int64 a = {0}> { y = ReduceMean(x, a) }",
    "Flatten": "(float[2] x) => (float[1,2] y) { y = Flatten<axis = -3>(x) }",
    "Transpose": "(float[2,3,4] x) => (float[3,4,2] y) { y = Transpose<perm = [1, 2, 1048576]>(x) }",
    "ConvTranspose": "(float[3] x) => (float[3] y) { y = ConvTranspose(x, x) }",
}


@pytest.mark.parametrize("operator", DEADLY)
def test_operator_is_rejected_when_torch_mlir_dies_on_it(operator: str, tmp_path: Path) -> None:
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 21]> g {DEADLY[operator]}')
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(UnsupportedError, match=operator):
        perform_in_child(Request.to_compile(tmp_path / "m.onnx", tmp_path / "x.hipdnn"))


INVALID = {
    "attribute of another type": helper.make_node("Softmax", ["x"], ["y"], axis="last"),
    "attribute that the operator has not": helper.make_node("Relu", ["x"], ["y"], slope=1.0),
    "too many operands": helper.make_node("Relu", ["x", "x"], ["y"]),
}


@pytest.mark.parametrize("opset", [9, 21])
@pytest.mark.parametrize("kind", INVALID)
def test_broken_model_is_no_defect_of_the_compiler(kind: str, opset: int) -> None:
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[2,3] x) => (float[2,3] y) {{}}')
    proto.graph.node.append(INVALID[kind])
    with pytest.raises(ModelError, match="model: not a valid ONNX model: "):
        compile_model(proto)


def test_old_model_with_an_unknown_operator_is_no_defect_of_the_compiler() -> None:
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 9]> g (float[2] x) => (float[2] y) { y = Twist(x) }'
    )
    with pytest.raises(ModelError, match="cannot be upgraded from opset 9 to 21"):
        compile_model(proto)


CONTRADICTORY = {
    "an operator that its version has not": (18, "(float[2,8] x) => (float[2,8] y) { y = Attention(x, x, x) }"),
    "a result of another rank": (21, "(float[6] x, int64[2] s) => (float[2,7] y, float[4] z) { y, z = Split(x, s) }"),
    "a constant without a value": (21, "(float[2] x) => (float[2] y) { c = Constant() y = Add(x, c) }"),
}


@pytest.mark.parametrize("kind", CONTRADICTORY)
def test_what_the_compiler_fails_on_is_asked_of_onnx_before_it_is_a_defect(kind: str, tmp_path: Path) -> None:
    opset, text = CONTRADICTORY[kind]
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}')
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises((ModelError, UnsupportedError)) as raised:
        perform_in_child(Request.to_compile(tmp_path / "m.onnx", tmp_path / "x.hipdnn"))
    assert "m.onnx" in str(raised.value)


_KILLED = """
import os, sys, threading, time
from pathlib import Path
from hipdnn_mlir.service.child import perform_in_child
from hipdnn_mlir.service.request import Request
model, output, started = map(Path, sys.argv[1:])
def die():
    while not started.exists():
        time.sleep(0.05)
    os.kill(os.getpid(), 9)
threading.Thread(target=die).start()
perform_in_child(Request.to_compile(model, output))
"""


def test_child_writes_nothing_behind_a_caller_that_was_killed(small_model: Path, tmp_path: Path, sabotage) -> None:
    started = tmp_path / "started"
    sabotage(f"os.symlink('/proc/%d' % os.getpid(), {str(started)!r}); time.sleep(120)")
    command = [sys.executable, "-P", "-c", _KILLED, small_model, tmp_path / "x.hipdnn", started]
    assert subprocess.run(command, capture_output=True, check=False, cwd=tmp_path).returncode == -9
    child = started.readlink()
    deadline = time.monotonic() + 60
    while child.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not child.exists()
    assert not (tmp_path / "x.hipdnn").exists()
