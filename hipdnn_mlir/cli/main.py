"""The command ``hipdnn-mlir``: compile, run, explain, verify, inspect and devices.

Results go to standard output, progress and errors to standard error. Exit codes: 0 done, 1 outputs differ from the
reference, 2 the user's error, 3 a defect of the compiler.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.logging import RichHandler

from ..errors import COMPILER_DEFECT, USER_ERROR, HipdnnMlirError, ModelError, RefusedPlan
from ..precision import TF32, UNCHANGED
from ..service.child import perform_in_child
from ..service.request import Request
from ..service.server import perform_here
from ..session.recovery import recovered
from .option_needs import is_program
from .options import ModelPath, command, session_options

app = typer.Typer(
    help="Compile ONNX models to hipDNN programs and run them.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_out = Console()
_err = Console(stderr=True)


@app.callback()
def _options(
    *,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log to standard error.")] = False,
    extension: Annotated[
        list[str], typer.Option(metavar="MODULE", help="Import a module that adds passes or operators to the compiler.")
    ] = [],  # noqa: B006 - typer copies it
) -> None:
    if verbose:
        logging.basicConfig(level=logging.DEBUG, format="%(message)s", handlers=[RichHandler(console=_err)])
    if extension:
        from ..extension import load_extensions

        load_extensions(extension)


@command(app, "compile")
def compile_(model: ModelPath, given: SimpleNamespace) -> None:
    """Compile an ONNX model to a program file."""
    from . import execution, inspection, render

    output = given.output or model.with_suffix(".hipdnn")
    start = time.perf_counter()

    def made(refused: Sequence[RefusedPlan]) -> float:
        _compile(model, output, given, refused, dump_ir=given.dump_ir)
        return time.perf_counter() - start

    refusals = execution.refusals_of(given.target, given.precision, {})
    elapsed_s, data = recovered(made, lambda elapsed_s: (elapsed_s, inspection.inspect(output)), refusals=refusals)
    if given.json:
        _print_json({"output": str(output), "bytes": output.stat().st_size, "elapsed_s": elapsed_s, **data})
    else:
        size = render.bytes_text(output.stat().st_size)
        _out.print(
            f"{output}: {size} in {elapsed_s:.2f} s; {render.program_summary(data)}", markup=False, soft_wrap=True
        )
        for name, reason in data["exact"].items():
            _out.print(
                f"dimension '{name}' accepts only its buckets, since padding would change results: {reason}",
                markup=False,
                soft_wrap=True,
            )


@command(app, "run")
def run(
    model: Annotated[Path, typer.Argument(help="ONNX file or program file.", show_default=False)],
    given: SimpleNamespace,
) -> None:
    """Run a model or a program, on given or random inputs."""
    from . import arrays, execution
    from .inputs import Given

    if given.tf32 and given.precision == UNCHANGED:
        given.precision = TF32
    rtol, atol = arrays.tolerances(given.precision)
    options = execution.Options(
        inputs=Given(given.inputs, given.ranges, given.shapes if is_program(model) else {}, given.seed),
        output=given.output,
        reference=_reference_model(model, given.compare, given.reference),
        rtol=rtol if given.rtol is None else given.rtol,
        atol=atol if given.atol is None else given.atol,
        repeat=given.repeat,
        session=session_options(given),
    )
    if is_program(model):
        report = execution.execute(model, options)
    else:
        with tempfile.TemporaryDirectory(prefix="hipdnn-mlir-") as scratch:
            program = Path(scratch, f"{model.stem}.hipdnn")

            def made(refused: Sequence[RefusedPlan]) -> Path:
                _compile(model, program, given, refused)
                return program

            refusals = execution.refusals_of(given.target, given.precision, options.session)
            report = recovered(made, lambda program: execution.execute(program, options), refusals=refusals)
    if given.json:
        _print_json(report.to_dict())
    else:
        _out.print(report)
    if not report.is_within_tolerance:
        raise typer.Exit(1)


@command(app, "explain")
def explain(model: ModelPath, given: SimpleNamespace) -> None:
    """Show which nodes form which graph on which engine, and why others are left out."""
    from . import render

    request = Request.to_explain(
        model,
        target=given.target,
        precision=given.precision,
        shapes=given.shapes,
        buckets=given.buckets,
        plans=given.plans,
    )
    data = _perform(request, f"explaining {model.name}", given)
    if given.json:
        _print_json(data)
    else:
        _out.print(render.explanation(data))


@command(app, "verify")
def verify(model: ModelPath, given: SimpleNamespace) -> None:
    """Compare a model, as it is and in another precision, with ONNX Runtime on given or random inputs."""
    from . import verification
    from .inputs import Given

    with tempfile.TemporaryDirectory(prefix="hipdnn-mlir-") as scratch:
        programs = {name: Path(scratch, f"{name}.hipdnn") for name in dict.fromkeys((UNCHANGED, given.precision))}

        def made(refused: Sequence[RefusedPlan]) -> dict[str, Path]:
            for name, program in programs.items():
                _compile(model, program, given, refused, precision=name)
            return programs

        def compared(programs: dict[str, Path]) -> verification.Verification:
            return verification.verify(
                model,
                programs,
                tolerance=given.tolerance,
                inputs=Given(given.inputs, given.ranges, seed=given.seed),
                session=session_options(given),
            )

        report = recovered(made, compared)
    if given.json:
        _print_json(report.to_dict())
    else:
        _out.print(report)
    if not report.is_within_tolerance:
        raise typer.Exit(1)


@command(app, "inspect")
def inspect(
    program: Annotated[Path, typer.Argument(help="Program file.", show_default=False)], given: SimpleNamespace
) -> None:
    """Show what a program file holds: inputs, outputs, executables, steps, memory."""
    from . import inspection, render

    data = inspection.inspect(program)
    if given.json:
        _print_json(data)
    else:
        _out.print(render.program(data))


@command(app, "devices")
def devices(given: SimpleNamespace) -> None:
    """List the devices that programs can run on here, with the engines of their libraries; why not, where a port has none."""
    from ..session.devices import list_devices
    from . import render

    rows = list_devices(given.plugin_dirs, given.plugin_mode)
    if given.json:
        _print_json({"devices": [row.to_dict() for row in rows]})
    else:
        _out.print(render.devices(rows))


def _reference_model(model: Path, compare: str | None, reference: Path | None) -> Path | None:
    """Return the ONNX file to compare with, if any."""
    if compare is None:
        return None
    if reference is None and is_program(model):
        raise ModelError(
            "a program file does not hold its ONNX model",
            where="--compare",
            hint="name the model: --reference UNCHANGED.onnx",
        )
    return reference or model


def _compile(
    model: Path,
    output: Path,
    given: SimpleNamespace,
    refused: Sequence[RefusedPlan],
    *,
    precision: str | None = None,
    dump_ir: Path | None = None,
) -> None:
    """Compile a model to a file, in a child unless told otherwise."""
    if not output.parent.is_dir():
        raise ModelError("no such directory", where=str(output.parent), hint="create it, or choose another --output")
    request = Request.to_compile(
        model,
        output,
        target=given.target,
        precision=precision or given.precision,
        shapes=given.shapes,
        buckets=given.buckets,
        refused=refused,
        dump_ir=dump_ir,
    )
    _perform(request, f"compiling {model.name}", given)


def _perform(request: Request, title: str, given: SimpleNamespace) -> dict[str, Any]:
    """Perform a request here or in a child; on a terminal, a spinner shows what goes on."""
    if given.in_process:
        return perform_here(request)
    if not _err.is_terminal:
        return perform_in_child(request, timeout_s=given.compile_timeout_s)
    with _err.status(title) as status:
        return perform_in_child(
            request,
            timeout_s=given.compile_timeout_s,
            on_progress=lambda message: status.update(f"{title}: {message}"),
        )


def _print_json(data: Mapping[str, Any]) -> None:
    json.dump(data, sys.stdout, indent=2)
    sys.stdout.write("\n")


def _fail(message: str, exit_code: int) -> int:
    """Print one line on standard error and return the exit code."""
    sys.stderr.write(f"hipdnn-mlir: error: {' '.join(message.split())}\n")
    return exit_code


def run_guarded(command: Callable[[], int | None]) -> int:
    """Run a command and return its exit code; every failure is one line on standard error, never a traceback."""
    try:
        return command() or 0
    except HipdnnMlirError as error:
        return _fail(str(error), error.exit_code)
    except typer.TyperException as error:
        return _fail(f"{error.format_message()} Try 'hipdnn-mlir --help'.", USER_ERROR)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", USER_ERROR)
    except Exception as error:  # noqa: BLE001 - the command's own boundary
        with tempfile.NamedTemporaryFile("w", prefix="hipdnn-mlir-", suffix=".log", delete=False) as log:
            log.write(f"{sys.argv}\n{traceback.format_exc()}")
        text = f"{type(error).__name__}: {error}; this is a defect of hipdnn-mlir, details: {log.name}"
        return _fail(text, COMPILER_DEFECT)


def main() -> None:
    """Entry point of the command."""
    sys.exit(run_guarded(lambda: app(standalone_mode=False)))


if __name__ == "__main__":
    main()
