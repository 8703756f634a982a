"""What the compiler adds to the command ``hipdnn-mlir``: compile, explain, verify, quantize and generate, and ``run`` of models."""

from __future__ import annotations

import contextlib
import json
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from hipdnn_mlir_runtime import _runtime
from hipdnn_mlir_runtime.cli.command import Argument, Command, Result
from hipdnn_mlir_runtime.cli.main import show
from hipdnn_mlir_runtime.cli.needs import check_folder, is_program
from hipdnn_mlir_runtime.cli.options import same_options, session_options
from hipdnn_mlir_runtime.cli.progress import working
from hipdnn_mlir_runtime.cli.tables import folded, line_width
from hipdnn_mlir_runtime.errors import MissingToolError, ModelError, RefusedPlan
from hipdnn_mlir_runtime.precision import UNCHANGED, Precision
from hipdnn_mlir_runtime.pytorch import is_exported
from hipdnn_mlir_runtime.session.recovery import recovered, refusals_of

from ..service.child import perform_in_child
from ..service.request import Request
from ..service.server import perform_here
from .generation import generate
from .quantization import quantize
from .serving import serve

if TYPE_CHECKING:
    from .bisection import Bisection
    from .verification import Verification


def compile_(given: SimpleNamespace) -> int:
    """Compile an ONNX or PyTorch model to a program file."""
    output = given.output or given.model.with_suffix(".hipdnn")
    start = time.perf_counter()

    def made(refused: Sequence[RefusedPlan]) -> float:
        _compile(given.model, output, given, refused, page_rows=given.page_rows, dump_ir=given.dump_ir)
        return time.perf_counter() - start

    def inspected(elapsed_s: float) -> tuple[float, dict[str, Any]]:
        from hipdnn_mlir_runtime.cli import inspection

        return elapsed_s, inspection.inspect(output)

    refusals = refusals_of(given.target, given.precision, {})
    elapsed_s, data = recovered(made, inspected, refusals=refusals)
    size = output.stat().st_size

    def text() -> str:
        from hipdnn_mlir_runtime.cli import render

        head = f"{output}: {render.bytes_text(size)} in {elapsed_s:.2f} s; {render.program_summary(data)}"
        exact = (
            f"dimension '{name}' has a program for each bucket and for no other size: {reason}"
            for name, reason in data["exact"].items()
        )
        return "\n".join(map(folded, [head, *exact]))

    show(given, lambda: {"output": str(output), "bytes": size, "elapsed_s": elapsed_s, **data}, text)
    return 0


def explain(given: SimpleNamespace) -> int:
    """Show which nodes form which graph on which engine, and why others are left out."""
    from ..report.explain_text import comparison_lines, explanation_lines

    check_folder(given.html, "--html")
    targets = given.target or ["host"]
    if len(targets) > 1 and given.plans:
        raise ModelError("plans are asked of one library", where="--plans", hint="give one --target")
    request = Request.to_explain(
        given.model,
        targets=targets,
        precision=given.precision,
        shapes=given.shapes,
        buckets=given.buckets,
        plans=given.plans,
    )
    data = _perform(request, f"explaining {given.model.name}", given)
    if given.html is not None:
        from hipdnn_mlir_runtime.atomic_file import write_text

        from ..report.page.explanation_page import explanation_html

        write_text(given.html, explanation_html(given.model.stem, data))
    lines = comparison_lines if request.targets else explanation_lines
    show(given, lambda: data, lambda: "\n".join(lines(data, line_width())))
    return 0


def verify(given: SimpleNamespace) -> int:
    """Compare a model, as it is and in another precision, with ONNX Runtime or PyTorch on given or random inputs."""
    from hipdnn_mlir_runtime.cli.inputs import Given

    from . import verification

    if given.bisect and is_exported(given.model):
        hint = "export the module with torch.onnx.export, and bisect that"
        raise ModelError("steps are compared with the nodes of an ONNX model", where="--bisect", hint=hint)
    with tempfile.TemporaryDirectory(prefix="hipdnn-mlir-") as scratch:
        programs = {name: Path(scratch, f"{name}.hipdnn") for name in dict.fromkeys((UNCHANGED, given.precision))}

        def made(refused: Sequence[RefusedPlan]) -> dict[str, Path]:
            for name, program in programs.items():
                _compile(given.model, program, given, refused, precision=name)
            return programs

        def compared(programs: dict[str, Path]) -> verification.Verification:
            with working(f"running {given.model.name}", quiet=given.quiet):
                return verification.verify(
                    given.reference or given.model,
                    programs,
                    tolerance=given.tolerance,
                    is_quantized=given.reference is not None,
                    inputs=Given(given.inputs, given.ranges, seed=given.seed),
                    session=session_options(given),
                )

        report = recovered(made, compared)
        if given.bisect:
            report = replace(report, bisection=_bisected(given, report, programs))
    show(given, report.to_dict, lambda: str(report))
    return 0 if report.is_verified else 1


def _bisected(given: SimpleNamespace, report: Verification, programs: Mapping[str, Path]) -> Bisection:
    """What comparing the program that is suspect step by step finds."""
    from .bisect import Bisector
    from .verification import tolerance_for

    precision, session = report.suspect, session_options(given)
    tolerance = given.tolerance if precision == given.precision else None
    alike = SimpleNamespace(**{**vars(given), "precision": precision, "shapes": {}, "buckets": {}})

    def use_compiled(model: Path, use: Callable[[Path], Result]) -> Result:
        return with_program(SimpleNamespace(**{**vars(alike), "model": model}), use)

    with working(f"comparing the steps of {given.model.name}", quiet=given.quiet):
        return Bisector(
            given.model,
            programs[precision],
            report.sessions[precision],
            report.feeds,
            precision=precision,
            tolerance_of=lambda want: tolerance_for(precision, want, tolerance),
            use_compiled=use_compiled,
            run_options=same_options("run", alike),
            options=session,
        ).bisect()


def missing_tools() -> Sequence[MissingToolError]:
    """What compiling for GPUs lacks here."""
    from ..codegen import missing_tools as missing

    return missing()


def missing_target(name: str) -> ModelError | None:
    """The error of compiling for a GPU's architecture that no target is of; None where there is a target."""
    from ..targets.table import find_target

    try:
        find_target(name)
    except ModelError as error:
        return error
    return None


def load_extensions(names: Sequence[str] = ()) -> None:
    """Import extensions, those of the environment and the given ones.

    Raises:
        HipdnnMlirError: one cannot be imported.
    """
    from ..extension import load_extensions as load

    load(names)


def with_program(given: SimpleNamespace, use: Callable[[Path], Result]) -> Result:
    """Compile a model to a file that is there while it is used; again without graphs that the library turns out to refuse."""
    with tempfile.TemporaryDirectory(prefix="hipdnn-mlir-") as scratch:
        program = Path(scratch, f"{given.model.stem}.hipdnn")

        def made(refused: Sequence[RefusedPlan]) -> Path:
            _compile(given.model, program, given, refused, page_rows=vars(given).get("page_rows"))
            return program

        return recovered(made, use, refusals=refusals_of(given.target, given.precision, session_options(given)))


def write_page(
    program: Path,
    output: Path,
    *,
    sizes: Mapping[str, int],
    times_us: Sequence[float] | None = None,
    reference: Path | None = None,
    precision: Precision = UNCHANGED,
) -> None:
    """Write the page about a program; with its model, the page shows the torch dialect of each region."""
    from ..report.page.write_page import write_page as write

    texts = None
    if reference is not None:
        text = json.loads(_runtime.Program.load(str(program)).text)
        digest, target = text["model"]["sha256"], text["target"]
        texts = perform_in_child(
            Request.to_read_regions(reference, digest=digest, target=target, precision=precision, shapes=sizes)
        )
    write(program, output, sizes=sizes, times_us=times_us, torch_ir=texts)


def write_partitioned(program: Path, output: Path, *, sizes: Mapping[str, int]) -> None:
    """Write a program's steps as an ONNX file."""
    from ..report.partitioned import write_partitioned as write

    write(program, output, sizes=sizes)


def _compile(
    model: Path,
    output: Path,
    given: SimpleNamespace,
    refused: Sequence[RefusedPlan],
    *,
    precision: Precision | None = None,
    page_rows: int | None = None,
    dump_ir: Path | None = None,
) -> None:
    """Compile a model to a file, in a child unless told otherwise."""
    check_folder(output, "--output")
    request = Request.to_compile(
        model,
        output,
        target=given.target,
        precision=precision or given.precision,
        shapes=given.shapes,
        buckets=given.buckets,
        page_rows=page_rows,
        last_valid=vars(given).get("last_valid"),
        refused=refused,
        dump_ir=dump_ir,
    )
    _perform(request, f"compiling {model.name}", given)


def _perform(request: Request, title: str, given: SimpleNamespace) -> dict[str, Any]:
    """Perform a request here or in a child; on a terminal, a line shows what goes on."""
    if given.extensions:
        load_extensions(given.extensions)
    with working(title, quiet=given.quiet) as progress:
        if given.in_process:
            return perform_here(request)
        threading.Thread(target=_load_session, daemon=True).start()
        return perform_in_child(request, timeout_s=given.compile_timeout_s, on_progress=progress)


def _load_session() -> None:
    """Load what opens a program, while the child compiles it; who opens one hears of what fails."""
    with contextlib.suppress(Exception):
        import_module("hipdnn_mlir_runtime.session.session")


def _model_path(path: Path) -> Path:
    if is_program(path):
        hint = (
            f"hipdnn-mlir inspect {path} shows what it holds, run --compare ort --reference MODEL compares its outputs"
        )
        raise ModelError("a program file, compiled already", where=str(path), hint=hint)
    return path


_MODEL = Argument("model", "ONNX or .pt2 file, or a folder that holds one.", ("*.onnx", "*.pt2"), _model_path)
_MODELS = Argument("models", "Model and program files, folders of a model, and folders of such folders.", is_many=True)
_FOLDER = Argument("model", "Folder made by onnxruntime-genai's model builder, or by Optimum.")
commands = (
    *(Command(name, run, (_MODEL,)) for name, run in (("compile", compile_), ("explain", explain), ("verify", verify))),
    Command("quantize", quantize, (_MODEL,)),
    Command("generate", generate, (_FOLDER,)),
    Command("serve", serve, (_MODELS,)),
)
