"""Compilation in a child process: a crash under the compiler becomes an error with a reproducer, the caller lives on.

``python -m hipdnn_mlir.service.child REPLY`` reads one JSON request from standard input, writes progress as JSON lines to
standard output and its reply to the file ``REPLY``. A reply that is missing means that the process died.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..dynamic.input_sizes import Buckets, Given, Shapes
from ..errors import PassError, RefusedPlan, error_from_dict
from ..options import options_of
from ..precision import UNCHANGED
from .reproducer import Reproducer, as_package_error

_log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_S: float = options_of("compile")["compile_timeout_s"].default
"""Seconds after which a silent child counts as hanging."""

_DETAIL_LIMIT_CHARS = 20_000

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What a child is asked to do.

    Attributes:
        action: ``compile`` writes a program file, ``explain`` returns an explanation.
        model: Absolute path of the ONNX file.
        target: Target to compile for.
        shapes: As for ``hipdnn_mlir.compile``.
        output: Absolute path of the program file to write (``compile``).
        dump_ir: Absolute path of the directory for the IR after each step, or None.
        precision: As for ``hipdnn_mlir.compile``.
        buckets: As for ``hipdnn_mlir.compile``.
        refused: The fields of each refused plan, as for ``hipdnn_mlir.compile``.
        plans: As for ``hipdnn_mlir.explain``.
    """

    action: Literal["compile", "explain"]
    model: str
    target: str
    shapes: dict[str, list[Given] | Given] = field(default_factory=dict)
    output: str | None = None
    dump_ir: str | None = None
    precision: str = UNCHANGED
    buckets: dict[str, list[int]] = field(default_factory=dict)
    refused: list[list[str]] = field(default_factory=list)
    plans: bool = False

    @classmethod
    def to_compile(
        cls,
        model: Path,
        output: Path,
        *,
        target: str = "host",
        precision: str = UNCHANGED,
        shapes: Shapes | None = None,
        buckets: Buckets | None = None,
        refused: Sequence[RefusedPlan] = (),
        dump_ir: Path | None = None,
    ) -> Request:
        """Return the request to compile a model to a file; arguments as for ``compile_in_child``."""
        return cls(
            "compile",
            str(model.absolute()),
            target,
            _lists(shapes),
            str(output.absolute()),
            None if dump_ir is None else str(dump_ir.absolute()),
            precision,
            _lists_of(buckets),
            [list(asdict(plan).values()) for plan in refused],
        )

    @classmethod
    def to_explain(
        cls,
        model: Path,
        *,
        target: str = "host",
        precision: str = UNCHANGED,
        shapes: Shapes | None = None,
        buckets: Buckets | None = None,
        plans: bool = False,
    ) -> Request:
        """Return the request to explain a model; its result is ``Explanation.to_dict()``."""
        return cls(
            "explain",
            str(model.absolute()),
            target,
            _lists(shapes),
            precision=precision,
            buckets=_lists_of(buckets),
            plans=plans,
        )

    def command(self, model: str) -> list[str]:
        """Return the command line that does the same in one process, on ``model``."""
        command = ["hipdnn-mlir", self.action, model, "--in-process", "--target", self.target]
        command += precision_options(self.precision) + shape_options(self.shapes)
        command += bucket_options(self.buckets)
        return [*command, "-o", "out.hipdnn"] if self.action == "compile" else command


def precision_options(precision: str) -> list[str]:
    """Return the options of the command line that say the same as ``precision``."""
    return [] if precision == UNCHANGED else ["--precision", precision]


def shape_options(shapes: Shapes) -> list[str]:
    """Return the options of the command line that say the same as ``shapes``."""
    options = []
    for name, sizes in shapes.items():
        dims = [sizes] if isinstance(sizes, (int, str)) or sizes is None else list(sizes)
        separator = "x" if all(isinstance(size, int) for size in dims) else ","
        options += ["--shape", f"{name}={separator.join('?' if size is None else str(size) for size in dims)}"]
    return options


def bucket_options(buckets: Buckets) -> list[str]:
    """Return the options of the command line that say the same as ``buckets``."""
    return [f"--bucket={name}={','.join(map(str, sizes))}" for name, sizes in buckets.items()]


def _lists(shapes: Shapes | None) -> dict[str, list[Given] | Given]:
    """Return ``shapes`` in a form that JSON has."""
    return {
        name: sizes if isinstance(sizes, (int, str)) or sizes is None else list(sizes)
        for name, sizes in (shapes or {}).items()
    }


def _lists_of(buckets: Buckets | None) -> dict[str, list[int]]:
    return {name: list(sizes) for name, sizes in (buckets or {}).items()}


def compile_in_child(
    model: Path,
    output: Path,
    *,
    target: str = "host",
    precision: str = UNCHANGED,
    shapes: Shapes | None = None,
    buckets: Buckets | None = None,
    dump_ir: Path | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    on_progress: Progress | None = None,
) -> None:
    """Compile an ONNX file to a program file in a child process.

    Args:
        model: The ONNX file.
        output: The program file to write, atomically.
        target: Target to compile for.
        precision: As for ``hipdnn_mlir.compile``.
        shapes: As for ``hipdnn_mlir.compile``.
        buckets: As for ``hipdnn_mlir.compile``.
        dump_ir: Directory for the IR after each step.
        timeout_s: Seconds without a line of progress after which the child is killed.
        on_progress: Called with a line of text as compilation moves on.

    Raises:
        HipdnnMlirError: Whatever ``hipdnn_mlir.compile`` raised in the child, as the class it was.
        PassError: The child crashed or hung; the error names a saved reproducer.
    """
    request = Request.to_compile(
        model, output, target=target, precision=precision, shapes=shapes, buckets=buckets, dump_ir=dump_ir
    )
    perform_in_child(request, timeout_s=timeout_s, on_progress=on_progress)


def perform_in_child(
    request: Request, *, timeout_s: float = DEFAULT_TIMEOUT_S, on_progress: Progress | None = None
) -> dict[str, Any]:
    """Perform a request in a child process and return its result.

    Raises:
        HipdnnMlirError: Whatever the request raised in the child, as the class it was.
        PassError: The child crashed or hung; the error names a saved reproducer.
    """
    with tempfile.TemporaryDirectory(prefix="hipdnn-mlir-") as scratch:
        reply_path, stderr_path = Path(scratch, "reply.json"), Path(scratch, "stderr.txt")
        ending = _run_child(request, reply_path, stderr_path, timeout_s, on_progress)
        stderr = stderr_path.read_text(errors="replace")
        if stderr:
            _log.debug("child's standard error: %s", stderr)
        if reply_path.exists():
            return _result(json.loads(reply_path.read_text()), request)
    failure = PassError(f"the compiler {ending}", where=request.model, detail=stderr[-_DETAIL_LIMIT_CHARS:])
    return _result(failure.to_dict(), request)


def perform_here(request: Request) -> dict[str, Any]:
    """Perform a request in this process and return its result; errors are those of ``perform_in_child``."""
    return _result(_guarded(request), request)


def _result(reply: dict[str, Any], request: Request) -> dict[str, Any]:
    """Return the result in a reply, or raise its error; a defect gets a reproducer."""
    if "result" in reply:
        result: dict[str, Any] = reply["result"]
        return result
    failure = error_from_dict(reply)
    if isinstance(failure, PassError) and failure.reproducer is None:
        failure = failure.with_reproducer(_save_reproducer(request, failure))
    raise failure


def _run_child(
    request: Request, reply_path: Path, stderr_path: Path, timeout_s: float, on_progress: Progress | None
) -> str:
    """Start the child, wait for it, and say in words how it ended."""
    # The child must import the same package as its parent, installed or not, and nothing from the working directory.
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    with stderr_path.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "hipdnn_mlir.service.child", str(reply_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
    try:
        heard = _Progress(on_progress)
        reader = threading.Thread(target=_forward_progress, args=(process, heard), daemon=True)
        reader.start()
        assert process.stdin is not None
        try:
            with process.stdin:
                json.dump(asdict(request), process.stdin)
        except BrokenPipeError:
            _log.debug("the child ended before it read its request")
        while (remaining_s := timeout_s - heard.silent_s) > 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(remaining_s)
                break
        else:
            return f"gave no answer within {timeout_s:g} s and was stopped"
    finally:
        process.kill()
        process.wait()
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"exited with status {status} without a reply"


class _Progress:
    """Hands on what a child says, and knows for how long it has said nothing."""

    def __init__(self, on_progress: Progress | None) -> None:
        self._on_progress = on_progress
        self._heard_s = time.monotonic()

    def __call__(self, message: str) -> None:
        self._heard_s = time.monotonic()
        _log.info("%s", message)
        if self._on_progress is not None:
            self._on_progress(message)

    @property
    def silent_s(self) -> float:
        """Seconds since the last message, or the start."""
        return time.monotonic() - self._heard_s


def _forward_progress(process: subprocess.Popen[str], heard: _Progress) -> None:
    """Hand on the child's progress lines; lines that libraries print are dropped."""
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            try:
                message = json.loads(line)["progress"]
            except (ValueError, KeyError, TypeError):
                continue
            heard(message)


def _save_reproducer(request: Request, error: PassError) -> Path:
    """Save what is needed to repeat a failure and return its directory."""
    reproducer = Reproducer()
    model = Path(request.model)
    reproducer.describe(asdict(request), request.command(reproducer.add_model(model)), error)
    return reproducer.directory


class _ProgressHandler(logging.Handler):
    """Writes the package's log records to standard output as progress lines."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stdout.write(json.dumps({"progress": record.getMessage()}) + "\n")
        sys.stdout.flush()


def _serve(request: Request) -> dict[str, Any]:
    """Do what a request asks, in this process."""
    import hipdnn_mlir

    shapes = request.shapes
    model = Path(request.model)
    if request.action == "explain":
        found = hipdnn_mlir.explain(
            model,
            target=request.target,
            precision=request.precision,
            shapes=shapes,
            buckets=request.buckets,
            plans=request.plans,
        )
        return found.to_dict()
    assert request.output is not None
    dump_ir = None if request.dump_ir is None else Path(request.dump_ir)
    program = hipdnn_mlir.compile(
        model,
        target=request.target,
        precision=request.precision,
        shapes=shapes,
        buckets=request.buckets,
        refused=[RefusedPlan(*fields) for fields in request.refused],
        dump_ir=dump_ir,
    )
    program.save(Path(request.output))
    return {}


def _guarded(request: Request) -> dict[str, Any]:
    """Return ``{"result": ...}`` of a request, or the dict form of the error that it ended in."""
    try:
        return {"result": _serve(request)}
    except Exception as error:  # noqa: BLE001 - the process boundary: nothing may pass it as a traceback
        return as_package_error(error).to_dict()


def main() -> None:
    """Serve the request on standard input; the reply appears as a whole or not at all."""
    logger = logging.getLogger("hipdnn_mlir")
    logger.setLevel(logging.INFO)
    logger.addHandler(_ProgressHandler())
    request = Request(**json.load(sys.stdin))
    reply_path = Path(sys.argv[1])
    partial = reply_path.with_suffix(".partial")
    partial.write_text(json.dumps(_guarded(request)))
    partial.replace(reply_path)


if __name__ == "__main__":
    main()
