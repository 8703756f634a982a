"""Where the compiler runs, what happens when it fails, and what is kept on disk."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from .processes import children
from .sessions import make_session, placed_nodes, reference, session_options
from .small_models import alternating, convolution, inputs_for, many_weights

FAKE_COMPILER = """#!{python}
import json, os, signal, socket, struct, sys, time
link = socket.socket(fileno=int(sys.argv[-1]))
while True:
    head = link.recv(4)
    if not head:
        sys.exit(0)
    request = json.loads(link.recv(struct.unpack("<I", head)[0]))
    if request["action"] == "hello":
        reply = json.dumps({{"result": {{"version": "{version}", "producers": {{}}, "targets": ["host"]}}}}).encode()
        link.sendall(struct.pack("<I", len(reply)) + reply)
        continue
    {misbehave}
"""
FAILURES = {
    "crash": ("sys.stderr.write('last words'); sys.stderr.flush(); os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
    "hang": ("time.sleep(3600)", "no answer"),
    "garbage": ("link.sendall(struct.pack('<I', 5) + b'what?')", "compiler"),
    "exit": ("sys.exit(7)", "compiler"),
}


@pytest.fixture
def fake(tmp_path):
    """Return a function that makes an interpreter whose compiler misbehaves."""
    from importlib.metadata import version

    def make(misbehave: str) -> str:
        path = tmp_path / "python"
        path.write_text(
            FAKE_COMPILER.format(python=sys.executable, version=version("hipdnn-mlir"), misbehave=misbehave)
        )
        path.chmod(0o755)
        return str(path)

    return make


def check(session, model, count: int = 2) -> None:
    x = inputs_for(model)
    assert len(placed_nodes(session)[0]) == count
    np.testing.assert_allclose(session.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["auto", "subprocess", "inprocess"])
def test_every_mode_compiles(mode, tmp_path) -> None:
    model = convolution()
    check(make_session(model, tmp_path, options={"compiler": mode}), model)


def test_none_leaves_nodes_to_the_cpu(tmp_path) -> None:
    model = convolution()
    check(make_session(model, tmp_path, options={"compiler": "none"}), model, count=0)


@pytest.mark.parametrize("kind", FAILURES)
def test_failing_compiler_is_an_error_when_strict_and_a_retry_works(kind, fake, tmp_path) -> None:
    misbehave, words = FAILURES[kind]
    options = {"compiler": "subprocess", "strict": "1", "compile_timeout_s": "1" if kind == "hang" else "30"}
    model = convolution()
    with pytest.raises(Exception, match=words):
        make_session(model, tmp_path / "cache", options={**options, "python": fake(misbehave)})
    check(make_session(model, tmp_path / "cache", options={"compiler": "subprocess"}), model)


@pytest.mark.parametrize("kind", ["crash", "exit", "garbage"])
def test_compiler_that_dies_leaves_the_model_to_the_cpu(kind, fake, tmp_path, capfd) -> None:
    misbehave, words = FAILURES[kind]
    model = convolution()
    settings = session_options(tmp_path / "cache", options={"compiler": "subprocess", "python": fake(misbehave)})
    settings.log_severity_level = 2
    check(onnxruntime.InferenceSession(model.SerializeToString(), sess_options=settings), model, count=0)
    (warning,) = (line for line in capfd.readouterr().err.splitlines() if "all nodes run on the CPU: " in line)
    assert words in warning


def test_compiler_that_hangs_is_an_error(fake, tmp_path) -> None:
    options = {"compiler": "subprocess", "compile_timeout_s": "1", "python": fake("time.sleep(3600)")}
    with pytest.raises(Exception, match="no answer"):
        make_session(convolution(), tmp_path, options=options)


def test_missing_interpreter_is_named_when_insisted_on(tmp_path) -> None:
    with pytest.raises(Exception, match="/no/such/python"):
        make_session(convolution(), tmp_path, options={"compiler": "subprocess", "python": "/no/such/python"})
    model = convolution()
    check(make_session(model, tmp_path, options={"compiler": "auto", "python": "/no/such/python"}), model, count=0)


_ON_A_GPU_TARGET = """
import sys
import onnxruntime as ort
from hipdnn_mlir_runtime import ort_ep
options = ort.SessionOptions()
ort_ep.add_to_session_options(options, {"target": "sm_90", "placement": "maximal", "cache_dir": sys.argv[2]}, device="cpu")
ort.ModelCompiler(options, sys.argv[1]).compile_to_file(sys.argv[3])
"""


def test_missing_code_generator_is_told_once_and_not_remembered(tmp_path) -> None:
    (tmp_path / "without/llvmlite").mkdir(parents=True)
    (tmp_path / "without/llvmlite/__init__.py").write_text("raise ImportError('no llvmlite')")
    onnx.save(alternating(), tmp_path / "model.onnx")

    def compiled(name: str, **environment: str) -> tuple[list[str], list[str]]:
        arguments = [
            sys.executable,
            "-c",
            _ON_A_GPU_TARGET,
            *(tmp_path / part for part in ("model.onnx", "cache", name)),
        ]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True, env={**os.environ, **environment})
        warnings = [line for line in done.stderr.splitlines() if "llvmlite" in line]
        return warnings, [node.op_type for node in onnx.load(tmp_path / name).graph.node]

    (warning,), operators = compiled("without.onnx", PYTHONPATH=str(tmp_path / "without"))
    assert "the others on the CPU: " in warning
    assert "pip install llvmlite" in warning
    assert "EPContext" not in operators
    warnings, operators = compiled("with.onnx")
    assert not warnings
    assert "EPContext" in operators


def cached(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.glob(f"*.{suffix}"))


def test_second_session_needs_no_compiler(tmp_path, fake) -> None:
    model = alternating()
    options = {"placement": "maximal"}
    make_session(model, tmp_path / "cache", options=options)
    assert cached(tmp_path / "cache", "hipdnn")
    broken = {"compiler": "subprocess", "python": fake("sys.exit(7)"), **options}
    check(make_session(model, tmp_path / "cache", options=broken), model, count=4)


def test_model_is_found_again_whatever_order_onnxruntime_shows_it_in(tmp_path) -> None:
    model = many_weights()
    for _ in range(6):
        check(make_session(model, tmp_path), model, count=40)
    assert len(cached(tmp_path, "hipdnn")) == len(cached(tmp_path, "json")) == 1


def test_what_the_machine_lacks_is_not_kept_as_a_refusal(tmp_path) -> None:
    model = convolution(["n", 3, 8, 8])
    make_session(model, tmp_path, options={"dump_ir": "/proc/x"})
    assert not cached(tmp_path, "refused")
    make_session(model, tmp_path)
    assert cached(tmp_path, "hipdnn")


def test_other_weights_are_another_program(tmp_path) -> None:
    first, second = convolution(), convolution()
    second.graph.initializer[1].raw_data = np.full(8, 7, np.float32).tobytes()
    for model in (first, second, first):
        check(make_session(model, tmp_path), model)
    assert len(cached(tmp_path, "hipdnn")) == 2


@pytest.mark.parametrize("suffix", ["hipdnn", "json"])
@pytest.mark.parametrize("damage", [b"", b"\0" * 4096])
def test_damaged_entry_is_made_again(suffix, damage, tmp_path) -> None:
    model = convolution()
    make_session(model, tmp_path)
    (path,) = cached(tmp_path, suffix)
    good = path.read_bytes()
    path.write_bytes(damage)
    check(make_session(model, tmp_path), model)
    assert path.read_bytes() == good


@pytest.mark.parametrize(
    "changes",
    [
        {"partitions": [{"nodes": ["another"]}]},
        {"partitions": [{"nodes": ["conv", "conv", "relu"]}]},
        {"contradicted": {"x": [1, 2]}},
    ],
    ids=["unknown", "twice", "dims"],
)
def test_entry_of_other_content_is_made_again(changes, tmp_path) -> None:
    model = convolution()
    make_session(model, tmp_path)
    (path,) = cached(tmp_path, "json")
    good = path.read_bytes()
    path.write_text(json.dumps({**json.loads(good), **changes}))
    check(make_session(model, tmp_path), model)
    assert path.read_bytes() == good


def test_entries_in_the_place_of_others_are_made_again(tmp_path) -> None:
    first, second = convolution(), convolution()
    second.graph.initializer[1].raw_data = np.full(8, 7, np.float32).tobytes()
    for name, model in (("a", first), ("b", second)):
        make_session(model, tmp_path / name)
    for suffix in ("hipdnn", "json"):
        (of_first,), (of_second,) = (cached(tmp_path / name, suffix) for name in ("a", "b"))
        good = of_second.read_bytes()
        shutil.copy(of_first, of_second)
        check(make_session(second, tmp_path / "b"), second)
        assert of_second.read_bytes() == good


@pytest.mark.parametrize("directory", ["/proc/1/cache", "/dev/null/cache"])
def test_cache_that_cannot_be_written_is_done_without(directory, capfd) -> None:
    model = convolution()
    settings = session_options(directory)
    settings.log_severity_level = 2
    check(onnxruntime.InferenceSession(model.SerializeToString(), sess_options=settings), model)
    assert capfd.readouterr().err.count("compiled programs are not kept") == 1


def test_full_disk_is_done_without(tmp_path) -> None:
    """A small file system of its own, filled to the last byte."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("file systems cannot be mounted here: " + mounted.stderr.decode().strip())
    try:
        (folder / "filler").write_bytes(b"\0" * (60 << 10))
        model = convolution([1, 3, 32, 32])
        check(make_session(model, folder / "cache"), model)
        (folder / "filler").unlink()
        check(make_session(model, folder / "cache"), model)
        assert cached(folder / "cache", "hipdnn")
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_limit_zero_keeps_nothing(tmp_path) -> None:
    model = convolution()
    check(make_session(model, tmp_path / "cache", options={"cache_limit_mb": "0"}), model)
    assert not (tmp_path / "cache").exists()


WORKER = """
import sys
from tests.ort_ep.sessions import make_session, placed_nodes
from tests.ort_ep.small_models import convolution
for i in range(3):
    assert len(placed_nodes(make_session(convolution([1 + i, 3, 8, 8]), sys.argv[1]))[0]) == 2
"""


def test_processes_share_a_cache(tmp_path) -> None:
    root = Path(__file__).parent.parent.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(root)])}
    command = [sys.executable, "-P", "-c", WORKER, str(tmp_path)]
    workers = [subprocess.Popen(command, env=environment, cwd=root, stderr=subprocess.PIPE) for _ in range(3)]
    for worker in workers:
        _, errors = worker.communicate(timeout=300)
        assert worker.returncode == 0, errors.decode()
    assert len(cached(tmp_path, "hipdnn")) == 3
    assert {path.suffix for path in tmp_path.iterdir()} == {".hipdnn", ".json"}


def test_one_child_serves_all_sessions(tmp_path) -> None:
    make_session(convolution(), tmp_path / "a")
    before = children()
    for name in ("b", "c"):
        make_session(convolution(), tmp_path / name)
    assert children() == before


def wait_for_the_end(process: Path) -> None:
    """Wait until a process is gone, by its folder in /proc."""
    deadline = time.monotonic() + 300
    while process.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not process.exists()


HOST = """
import os, sys
from tests.ort_ep.processes import children
from tests.ort_ep.sessions import make_session
from tests.ort_ep.small_models import convolution
session = make_session(convolution(), sys.argv[1])
(child,) = children()
print(child, flush=True)
os.kill(os.getpid(), 9)
"""


def test_child_ends_with_a_killed_host(tmp_path) -> None:
    root = Path(__file__).parent.parent.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(root)])}
    done = subprocess.run(
        [sys.executable, "-P", "-c", HOST, str(tmp_path)], env=environment, cwd=root, capture_output=True, check=False
    )
    child = Path("/proc", done.stdout.decode().strip())
    assert child.name.isdigit(), done.stderr.decode()
    wait_for_the_end(child)


INTERRUPTED = """
import signal, sys
from tests.ort_ep.sessions import make_session
from tests.ort_ep.small_models import convolution
signal.signal(signal.SIGINT, signal.SIG_DFL)  # as in a host that is not Python
make_session(convolution(), sys.argv[1], options={"compiler": "subprocess"})
"""
SLOW = """
import os, sys, time
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch_mlir" and "hipdnn_mlir.service.server" in sys.orig_argv:
            os.symlink("/proc/%d" % os.getpid(), {started!r})
            time.sleep(600)
sys.meta_path.insert(0, Finder())
"""


def test_nothing_is_left_of_a_host_that_is_interrupted_while_it_compiles(tmp_path) -> None:
    root = Path(__file__).parent.parent.parent
    started = tmp_path / "started"
    (tmp_path / "sitecustomize.py").write_text(SLOW.format(started=str(started)))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path, str(root)])}
    command = [sys.executable, "-P", "-c", INTERRUPTED, str(tmp_path / "cache")]
    host = subprocess.Popen(command, env=environment, cwd=root, start_new_session=True)
    while not started.is_symlink():
        assert host.poll() is None
        time.sleep(0.01)
    os.killpg(host.pid, signal.SIGINT)  # as a terminal does
    assert host.wait() == -signal.SIGINT
    wait_for_the_end(started)
    assert not (tmp_path / "cache").exists()
