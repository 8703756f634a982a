"""The command ``hipdnn-mlir``: run, inspect and others; compile, explain and others where the compiler is installed.

Results go to standard output, progress and errors to standard error. Exit codes: 0 done, 1 outputs differ from the
reference, 2 the user's error, 3 a defect of the compiler.
"""

from __future__ import annotations

import io
import json
import logging
import math
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..errors import COMPILER_DEFECT, USER_ERROR, HipdnnMlirError, ModelError, is_out_of_memory
from ..options import options_of
from ..precision import TF32, UNCHANGED
from .command import Argument, Command, find_compiler, needed_compiler, use_program
from .needs import check_folder, is_program
from .options import session_options
from .parser import parse
from .progress import working
from .tables import line_width, printable

if TYPE_CHECKING:
    from ..session.profiling.profile import Profile


logger = logging.getLogger(__name__)


_STANDARD_ERROR = 2


def run(given: SimpleNamespace) -> int:
    """Run a model or a program, on given or random inputs."""
    from . import arrays, execution
    from .inputs import Given

    check_folder(given.output, "--output")
    model: Path = given.model
    if given.tf32 and given.precision == UNCHANGED:
        given.precision = TF32
    rtol, atol = arrays.tolerances(given.precision)
    options = execution.Options(
        inputs=Given(given.inputs, given.ranges, given.shapes if is_program(model) else {}, given.seed),
        output=given.output,
        reference=_reference_model(model, given.compare, given.reference),
        compare=given.compare or "ort",
        rtol=rtol if given.rtol is None else given.rtol,
        atol=atol if given.atol is None else given.atol,
        repeat=given.repeat,
        is_profiled=given.profile,
        session=session_options(given),
    )
    report = use_program(given, lambda program: execution.execute(program, options))
    show(given, report.to_dict, lambda: str(report))
    if is_program(model) and not report.is_within_tolerance and not execution.is_made_from(model, given.reference):
        logger.warning("%s was compiled from another model than %s: their SHA-256 differ", model, given.reference)
    return 0 if report.is_within_tolerance else 1


def bench(given: SimpleNamespace) -> int:
    """Measure latency and throughput of a model or a program, beside ONNX Runtime, OpenVINO or PyTorch where asked."""
    from .arrays import tolerances
    from .bench import benchmark
    from .inputs import Given

    model: Path = given.model
    rtol, atol = tolerances(given.precision)
    report = use_program(
        given,
        lambda program: benchmark(
            program,
            Given(given.inputs, given.ranges, given.shapes if is_program(model) else {}, given.seed),
            model=given.reference or (None if is_program(model) else model),
            against=given.against,
            warmup_s=given.warmup,
            duration_s=given.duration,
            batch=given.batch,
            session=session_options(given),
            rtol=rtol if given.rtol is None else given.rtol,
            atol=atol if given.atol is None else given.atol,
        ),
    )
    show(given, report.to_dict, lambda: str(report))
    return 0


def profile(given: SimpleNamespace) -> int:
    """Time each step of a model or a program, beside what this device can do."""
    from ..session.profiling.profile import profile as timed
    from ..session.session import Session
    from .inputs import Given, Inputs, symbol_sizes

    check_folder(given.html, "--html")
    check_folder(given.trace, "--trace")
    compiler = needed_compiler("--html") if given.html is not None else None
    sizes = given.shapes if is_program(given.model) else {}

    def profiled(program: Path) -> Profile:
        session = Session(program, **session_options(given))
        feeds = Inputs(session, Given(given.inputs, given.ranges, sizes, given.seed)).draw()
        found = timed(session, feeds, repeat=given.repeat)
        if compiler is not None:
            times_us = [step.time.median_us for step in found.steps]
            compiler.write_page(program, given.html, sizes=symbol_sizes(session, feeds), times_us=times_us)
        return found

    found = use_program(given, profiled)
    if given.trace is not None:
        found.write_trace(given.trace)
    show(given, found.to_dict, lambda: "\n".join(found.lines(sort=given.sort, line=line_width())))
    return 0


def inspect(given: SimpleNamespace) -> int:
    """Show what a program file holds: inputs, outputs, executables, steps, memory."""
    from . import inspection, render

    sizes = {name: size for name, size in given.shapes.items() if isinstance(size, int)}
    if given.html is not None:
        write = needed_compiler("--html").write_page
        write(given.program, given.html, sizes=sizes, reference=given.reference, precision=given.precision)
    if given.netron is not None:
        needed_compiler("--netron").write_partitioned(given.program, given.netron, sizes=sizes)
    data = inspection.inspect(given.program)
    show(given, lambda: data, lambda: render.program(data))
    return 0


def sign(given: SimpleNamespace) -> int:
    """Sign a program file: for those who load it with the public key of this private one."""
    from ..signature import sign as write_signature

    if given.key is None:
        hint = "openssl genpkey -algorithm ed25519 -out KEY makes one"
        raise ModelError("no key to sign with", where="--key", expected="a private ed25519 key", hint=hint)
    sys.stdout.write(printable(f"{write_signature(given.program, given.key)}\n"))
    return 0


def devices(given: SimpleNamespace) -> int:
    """List the devices of this machine, with the engines of their libraries; where a port has none, why."""
    from ..session.devices import list_devices
    from . import render

    rows = list_devices(given.plugin_dirs, given.plugin_mode)
    show(given, lambda: {"devices": [row.to_dict() for row in rows]}, lambda: render.devices(rows))
    return 0


def diff(given: SimpleNamespace) -> int:
    """Show how two program files differ: inputs and outputs, steps, weights. The exit code is 1 where they do."""
    from .difference import difference

    found = difference(given.first, given.second)
    show(given, found.to_dict, lambda: str(found))
    return 0 if found.is_empty else 1


def doctor(given: SimpleNamespace) -> int:
    """Look for problems of this machine and environment, and name a way out of each. The exit code is 1 where there are some."""
    from .doctor import diagnose, diagnose_amd

    found = diagnose_amd() if given.amd else diagnose()
    show(given, found.to_dict, lambda: str(found))
    return 1 if found.problems else 0


def cache_list(given: SimpleNamespace) -> int:
    """List what is kept: programs that ONNX Runtime's provider compiled, plans; with sizes and when each was last used."""
    from . import cache

    folder = cache.folder_of(given)
    with working(f"reading {folder}", quiet=given.quiet):
        data = cache.list_report(folder)
    show(given, lambda: data, lambda: cache.list_text(data))
    return 0


def cache_show(given: SimpleNamespace) -> int:
    """Show all about one entry."""
    from . import cache

    data = cache.show_report(cache.folder_of(given), str(given.key))
    show(given, lambda: data, lambda: cache.show_text(data))
    return 0


def cache_prune(given: SimpleNamespace) -> int:
    """Delete entries, without a question: those not used for some time, those of a kind, or all."""
    from . import cache

    data = cache.prune_report(cache.folder_of(given), kinds=given.kind, older_than=given.older_than, is_all=given.all)
    show(given, lambda: data, lambda: cache.prune_text(data))
    return 0


def cache_key(given: SimpleNamespace) -> int:
    """Show the keys under which ONNX Runtime's provider looks for a model's programs; nothing is compiled."""
    from .cache_key import key_report, key_text

    with working(f"asking ONNX Runtime about {given.model.name}", quiet=given.quiet):
        data = key_report(given)
    show(given, lambda: data, lambda: key_text(data))
    return 0


def show(given: SimpleNamespace, data: Callable[[], Mapping[str, Any]], text: Callable[[], str]) -> None:
    """Print a result: JSON where ``--json`` is given, else the text, and which files were written beside it."""
    files = [path for name in ("html", "netron", "trace") if (path := getattr(given, name, None)) is not None]
    written = "\n".join(f"Written: {path}" for path in files)
    shown = json.dumps(_finite(data()), indent=2) if given.json else "\n\n".join(filter(None, (text(), written)))
    sys.stdout.write(printable(shown) + "\n")


class _Printable(logging.Formatter):
    """Messages of the log, which may hold names of a file."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message for a terminal."""
        return printable(super().format(record))


def _finite(data: Any) -> Any:
    """Return data with None for numbers that JSON has not: infinities, and what is none."""
    if isinstance(data, Mapping):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _program_path(path: Path) -> Path:
    from ..session.source import kind_of_model

    kind = kind_of_model(path)
    if kind is not None:
        hint = f"compile it first (hipdnn-mlir compile {path}), or see where its nodes run (hipdnn-mlir explain {path})"
        raise ModelError(kind, where=str(path), expected="a program file (.hipdnn)", hint=hint)
    return path


def _program(name: str) -> Argument:
    return Argument(name, "Program file, or a folder that holds one.", ("*.hipdnn",), _program_path)


_MODEL_OR_PROGRAM = Argument(
    "model", "ONNX file, .pt2 file or program file, or a folder that holds one.", ("*.onnx", "*.pt2", "*.hipdnn")
)
COMMANDS = (
    Command("run", run, (_MODEL_OR_PROGRAM,)),
    Command("bench", bench, (_MODEL_OR_PROGRAM,)),
    Command("profile", profile, (_MODEL_OR_PROGRAM,)),
    Command("inspect", inspect, (_program("program"),)),
    Command(
        "diff",
        diff,
        (_program("first"), _program("second")),
    ),
    Command("sign", sign, (_program("program"),)),
    Command("devices", devices),
    Command("doctor", doctor),
    Command("cache list", cache_list),
    Command("cache show", cache_show, (Argument("key", "First digits of the entry's key."),)),
    Command("cache prune", cache_prune),
    Command("cache key", cache_key, (Argument("model", "ONNX file, or a folder that holds one.", ("*.onnx",)),)),
)


def all_commands() -> tuple[Command, ...]:
    """Return the commands that are installed, without the compiler's where it cannot be imported: `doctor` says why."""
    try:
        compiler = find_compiler()
    except ModelError:
        compiler = None
    return (*(compiler.commands if compiler is not None else ()), *COMMANDS)


def _reference_model(model: Path, compare: str | None, reference: Path | None) -> Path | None:
    """Return the model to compare with, if any."""
    if compare is None:
        return None
    if reference is None and is_program(model):
        raise ModelError(
            "a program file does not hold its model",
            where="--compare",
            hint="name the model: --reference MODEL",
        )
    return reference or model


def _fail(message: str, exit_code: int) -> int:
    """Print one line on standard error and return the exit code."""
    sys.stderr.write(f"hipdnn-mlir: error: {printable(' '.join(message.split()))}\n")
    return exit_code


def _with_flag(text: str, command: str) -> str:
    """Return an error's text with an option's flag for its name in Python, where the text begins with that."""
    name, colon, rest = text.partition(": ")
    row = (options_of("session") | options_of(command)).get(name)
    return text if row is None else f"{row.flags[0]}{colon}{rest}"


def call(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; every failure is one line on standard error, never a traceback."""
    name = ""
    try:
        command, given = parse(all_commands(), arguments)
        name = command.name
        level = logging.DEBUG if given.verbose else logging.ERROR if given.quiet else logging.WARNING
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Printable())
        logging.basicConfig(level=level, handlers=[handler])
        return command.run(given)
    except SystemExit as ended:  # help and the version
        return int(ended.code or 0)
    except HipdnnMlirError as error:
        return _fail(_with_flag(str(error), name), error.exit_code)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", USER_ERROR)
    except Exception as error:  # noqa: BLE001 - the command's own boundary
        if is_out_of_memory(error):
            return _fail("out of memory; close other programs, or raise the limit (ulimit -v, ulimit -d)", USER_ERROR)
        with tempfile.NamedTemporaryFile("w", prefix="hipdnn-mlir-", suffix=".log", delete=False) as log:
            log.write(f"{sys.argv}\n{traceback.format_exc()}")
        text = f"{type(error).__name__}: {error}; this is a defect of hipdnn-mlir, details: {log.name}"
        return _fail(text, COMPILER_DEFECT)


def _open_closed_streams() -> None:
    """Give standard streams that the caller has closed (``2>&-``) the null device; what is opened later would take their numbers."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(_STANDARD_ERROR, "w")


def main() -> None:
    """Entry point of the command."""
    _open_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names that the locale has no characters for are written out, as on standard error.
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(call(sys.argv[1:]))


if __name__ == "__main__":
    main()
