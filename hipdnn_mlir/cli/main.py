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
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.logging import RichHandler

from ..dynamic.input_sizes import Buckets, Shapes
from ..errors import COMPILER_DEFECT, USER_ERROR, HipdnnMlirError, ModelError, RefusedPlan
from ..precision import TF32, UNCHANGED
from ..service.child import DEFAULT_TIMEOUT_S, Request, perform_here, perform_in_child
from ..session.recovery import recovered
from .option_needs import COMPARISON, CheckedCommand, is_program
from .options import (
    BucketOptions,
    ComparePlans,
    DeviceNumber,
    Engine,
    Graph,
    InProcess,
    InputFiles,
    Json,
    Knobs,
    ModelPath,
    PlanCacheDir,
    PluginDirs,
    PluginMode,
    Policies,
    Precision,
    Ranges,
    Seed,
    ShapeOptions,
    Target,
    Tf32,
    Timeout,
    Tune,
    parse_buckets,
    parse_files,
    parse_knobs,
    parse_ranges,
    parse_shapes,
)

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


@app.command(name="compile", cls=CheckedCommand)
def compile_(
    model: ModelPath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Program file; default: the model's name with .hipdnn.")
    ] = None,
    target: Target = "host",
    precision: Precision = UNCHANGED,
    shape: ShapeOptions = [],  # noqa: B006 - typer copies it
    bucket: BucketOptions = [],  # noqa: B006 - typer copies it
    dump_ir: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the IR after each step here.")] = None,
    in_process: InProcess = False,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: Json = False,
) -> None:
    """Compile an ONNX model to a program file."""
    from . import execution, inspection, render

    output = output or model.with_suffix(".hipdnn")
    start = time.perf_counter()

    def made(refused: Sequence[RefusedPlan]) -> float:
        sizes, buckets = parse_shapes(shape), parse_buckets(bucket)
        _compile(model, output, target, precision, sizes, buckets, dump_ir, in_process, timeout, refused)
        return time.perf_counter() - start

    refusals = execution.refusals_of(target, precision, {})
    elapsed_s, data = recovered(made, lambda elapsed_s: (elapsed_s, inspection.inspect(output)), refusals=refusals)
    if as_json:
        _print_json({"output": str(output), "bytes": output.stat().st_size, "elapsed_s": elapsed_s, **data})
    else:
        size = render.bytes_text(output.stat().st_size)
        _out.print(
            f"{output}: {size} in {elapsed_s:.2f} s; {render.program_summary(data)}", markup=False, soft_wrap=True
        )
        for name, reason in data["exact"].items():
            _out.print(f"{name} takes its buckets alone, since {reason}", markup=False, soft_wrap=True)


@app.command(cls=CheckedCommand)
def run(
    model: Annotated[Path, typer.Argument(help="ONNX file or program file.", show_default=False)],
    input_: InputFiles = [],  # noqa: B006 - typer copies it
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the outputs to this .npz file.")] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="ort", help="Compare with ONNX Runtime's CPU provider.")
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(metavar="UNCHANGED.onnx", help="The model to compare a program file with."),
        COMPARISON,
    ] = None,
    rtol: Annotated[float | None, typer.Option(help="Relative tolerance; default by element type."), COMPARISON] = None,
    atol: Annotated[float | None, typer.Option(help="Absolute tolerance; default by element type."), COMPARISON] = None,
    repeat: Annotated[int, typer.Option(min=0, help="Timed runs.")] = 0,
    threads: Annotated[int, typer.Option(min=0, help="CPU threads of the host target; 0: all.")] = 0,
    range_: Ranges = [],  # noqa: B006 - typer copies it
    seed: Seed = None,
    target: Target = "host",
    precision: Precision = UNCHANGED,
    shape: ShapeOptions = [],  # noqa: B006 - typer copies it
    bucket: BucketOptions = [],  # noqa: B006 - typer copies it
    tune: Tune = 0,
    engine: Engine = "",
    knob: Knobs = [],  # noqa: B006 - typer copies it
    tf32: Tf32 = None,
    graph: Graph = False,
    device: DeviceNumber = 0,
    plan_cache: PlanCacheDir = None,
    compare_plans: ComparePlans = True,
    policy: Policies = [],  # noqa: B006 - typer copies it
    plugin_dir: PluginDirs = [],  # noqa: B006 - typer copies it
    plugin_mode: PluginMode = "additive",
    in_process: InProcess = False,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: Json = False,
) -> None:
    """Run a model or a program, on given or random inputs."""
    from ..session.plan_options import PlanOptions
    from . import arrays, execution
    from .inputs import Given

    if tf32 and precision == UNCHANGED:
        precision = TF32
    default_rtol, default_atol = arrays.tolerances(precision)
    options = execution.Options(
        inputs=Given(parse_files(input_), parse_ranges(range_), parse_shapes(shape) if is_program(model) else {}, seed),
        output=output,
        reference=_reference_model(model, compare, reference),
        rtol=default_rtol if rtol is None else rtol,
        atol=default_atol if atol is None else atol,
        repeat=repeat,
        threads=threads,
        graph=graph,
        plans=PlanOptions(
            device=device,
            tune=tune,
            engine=engine,
            knobs=parse_knobs(knob),
            tf32=tf32,
            plan_cache=plan_cache,
            compare_plans=compare_plans,
            policies=policy,
            plugin_dirs=plugin_dir,
            plugin_mode=plugin_mode,
        ),
    )
    if is_program(model):
        report = execution.execute(model, options)
    else:
        with tempfile.TemporaryDirectory(prefix="hipdnn-mlir-") as scratch:
            program = Path(scratch, f"{model.stem}.hipdnn")

            def made(refused: Sequence[RefusedPlan]) -> Path:
                sizes, buckets = parse_shapes(shape), parse_buckets(bucket)
                _compile(model, program, target, precision, sizes, buckets, None, in_process, timeout, refused)
                return program

            refusals = execution.refusals_of(target, precision, options.plans, threads, graph)
            report = recovered(made, lambda program: execution.execute(program, options), refusals=refusals)
    if as_json:
        _print_json(report.to_dict())
    else:
        _out.print(report)
    if not report.is_within_tolerance:
        raise typer.Exit(1)


@app.command(cls=CheckedCommand)
def explain(
    model: ModelPath,
    target: Target = "host",
    precision: Precision = UNCHANGED,
    shape: ShapeOptions = [],  # noqa: B006 - typer copies it
    bucket: BucketOptions = [],  # noqa: B006 - typer copies it
    plans: Annotated[
        bool,
        typer.Option("--plans", help="Build every plan here; show what the library refuses and what becomes of it."),
    ] = False,
    in_process: InProcess = False,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: Json = False,
) -> None:
    """Show which nodes form which graph on which engine, and why others are left out."""
    from . import render

    request = Request.to_explain(
        model,
        target=target,
        precision=precision,
        shapes=parse_shapes(shape),
        buckets=parse_buckets(bucket),
        plans=plans,
    )
    data = _perform(request, f"explaining {model.name}", in_process, timeout)
    if as_json:
        _print_json(data)
    else:
        _out.print(render.explanation(data))


@app.command(cls=CheckedCommand)
def verify(
    model: ModelPath,
    input_: InputFiles = [],  # noqa: B006 - typer copies it
    precision: Precision = UNCHANGED,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Largest error, relative to the output's scale; default 1e-4, with f16 5e-3, with bf16 3e-2."
        ),
    ] = None,
    threads: Annotated[int, typer.Option(min=0, help="CPU threads of the host target; 0: all.")] = 0,
    range_: Ranges = [],  # noqa: B006 - typer copies it
    seed: Seed = None,
    target: Target = "host",
    shape: ShapeOptions = [],  # noqa: B006 - typer copies it
    bucket: BucketOptions = [],  # noqa: B006 - typer copies it
    tune: Tune = 0,
    engine: Engine = "",
    knob: Knobs = [],  # noqa: B006 - typer copies it
    tf32: Tf32 = None,
    graph: Graph = False,
    device: DeviceNumber = 0,
    plan_cache: PlanCacheDir = None,
    compare_plans: ComparePlans = True,
    policy: Policies = [],  # noqa: B006 - typer copies it
    plugin_dir: PluginDirs = [],  # noqa: B006 - typer copies it
    plugin_mode: PluginMode = "additive",
    in_process: InProcess = False,
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: Json = False,
) -> None:
    """Compare a model, as it is and in another precision, with ONNX Runtime on given or random inputs."""
    from ..session.plan_options import PlanOptions
    from . import verification
    from .inputs import Given

    shapes, buckets = parse_shapes(shape), parse_buckets(bucket)
    with tempfile.TemporaryDirectory(prefix="hipdnn-mlir-") as scratch:
        programs = {name: Path(scratch, f"{name}.hipdnn") for name in dict.fromkeys((UNCHANGED, precision))}

        def made(refused: Sequence[RefusedPlan]) -> dict[str, Path]:
            for name, program in programs.items():
                _compile(model, program, target, name, shapes, buckets, None, in_process, timeout, refused)
            return programs

        def compared(programs: dict[str, Path]) -> verification.Verification:
            return verification.verify(
                model,
                programs,
                tolerance=tolerance,
                inputs=Given(parse_files(input_), parse_ranges(range_), seed=seed),
                threads=threads,
                graph=graph,
                plans=PlanOptions(
                    device=device,
                    tune=tune,
                    engine=engine,
                    knobs=parse_knobs(knob),
                    tf32=tf32,
                    plan_cache=plan_cache,
                    compare_plans=compare_plans,
                    policies=policy,
                    plugin_dirs=plugin_dir,
                    plugin_mode=plugin_mode,
                ),
            )

        report = recovered(made, compared)
    if as_json:
        _print_json(report.to_dict())
    else:
        _out.print(report)
    if not report.is_within_tolerance:
        raise typer.Exit(1)


@app.command(cls=CheckedCommand)
def inspect(
    program: Annotated[Path, typer.Argument(help="Program file.", show_default=False)], as_json: Json = False
) -> None:
    """Show what a program file holds: inputs, outputs, executables, steps, memory."""
    from . import inspection, render

    data = inspection.inspect(program)
    if as_json:
        _print_json(data)
    else:
        _out.print(render.program(data))


@app.command(cls=CheckedCommand)
def devices(
    plugin_dir: PluginDirs = [],  # noqa: B006 - typer copies it
    plugin_mode: PluginMode = "additive",
    as_json: Json = False,
) -> None:
    """List the devices that programs can run on here, with the engines of their libraries; why not, where a port has none."""
    from ..session.devices import list_devices
    from ..session.plan_options import absolute_paths
    from . import render

    rows = list_devices(absolute_paths(plugin_dir), plugin_mode)
    if as_json:
        _print_json({"devices": [row.to_dict() for row in rows]})
    else:
        _out.print(render.devices(rows))


def _reference_model(model: Path, compare: str | None, reference: Path | None) -> Path | None:
    """Return the ONNX file to compare with, if any."""
    if compare is None:
        return None
    if compare != "ort":
        raise ModelError("unknown reference", where="--compare", expected="'ort'", got=repr(compare))
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
    target: str,
    precision: str,
    shapes: Shapes,
    buckets: Buckets,
    dump_ir: Path | None,
    in_process: bool,
    timeout_s: float,
    refused: Sequence[RefusedPlan] = (),
) -> None:
    """Compile a model to a file, in a child unless told otherwise."""
    if not output.parent.is_dir():
        raise ModelError("no such directory", where=str(output.parent), hint="create it, or choose another --output")
    request = Request.to_compile(
        model,
        output,
        target=target,
        precision=precision,
        shapes=shapes,
        buckets=buckets,
        refused=refused,
        dump_ir=dump_ir,
    )
    _perform(request, f"compiling {model.name}", in_process, timeout_s)


def _perform(request: Request, title: str, in_process: bool, timeout_s: float) -> dict[str, Any]:
    """Perform a request here or in a child; on a terminal, a spinner shows what goes on."""
    if in_process:
        return perform_here(request)
    if not _err.is_terminal:
        return perform_in_child(request, timeout_s=timeout_s)
    with _err.status(title) as status:
        return perform_in_child(
            request, timeout_s=timeout_s, on_progress=lambda message: status.update(f"{title}: {message}")
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
