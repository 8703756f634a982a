"""hipdnn-opt: run passes, ours and MLIR's, on a .mlir file, as mlir-opt does."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from torch_mlir import ir
from torch_mlir.passmanager import PassManager

from hipdnn_mlir_runtime.cli.parser import versions
from hipdnn_mlir_runtime.errors import HipdnnMlirError, PassError, UnsupportedError

from ..extension import load_extensions
from ..ir.assembly import module_text
from ..ir.dialect import make_context
from ..ir.module_pass import PASSES
from ..ops.spec import Refusal
from ..passes.pipeline import PIPELINES, build, pass_name, single_passes, split_top_level
from .diagnostics import Diagnostic, Source, report_unexpected, split_source

_WRAPPED = re.compile(r"\s*builtin\.module\((.*)\)\s*", re.DOTALL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run, print; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        load_extensions(_extensions(given))
        options, flags = _parser().parse_known_args(given)
        _refuse_idle(options, flags)
        pipeline = options.pass_pipeline if options.pass_pipeline is not None else _from_flags(flags)
        wrapped = _WRAPPED.fullmatch(pipeline)
        return _run(options, expand(wrapped.group(1) if wrapped else pipeline))
    except HipdnnMlirError as error:
        sys.stderr.write(f"hipdnn-opt: error: {error}\n")
        return error.exit_code


def _refuse_idle(options: argparse.Namespace, flags: Sequence[str]) -> None:
    """Refuse what would have no effect beside other options.

    Raises:
        HipdnnMlirError: passes are named twice over, or a module that is not printed has a place or a form.
    """
    if options.pass_pipeline is not None and flags:
        hint = "put them into the pipeline, or leave --pass-pipeline out"
        raise HipdnnMlirError("passes beside --pass-pipeline", where=" ".join(flags), hint=hint)
    printing = {"-o": options.output is not None, "--mlir-print-debuginfo": options.mlir_print_debuginfo}
    idle = [option for option, is_given in printing.items() if is_given]
    if options.verify_diagnostics and idle:
        hint = "leave one of them out"
        raise HipdnnMlirError("--verify-diagnostics prints no module", where=", ".join(idle), hint=hint)


def _extensions(arguments: Sequence[str]) -> list[str]:
    """The extensions that the command line names: read first, because they add passes to the rest of it."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--extension", action="append", default=[])
    return list(parser.parse_known_args(arguments)[0].extension)


def _parser() -> argparse.ArgumentParser:
    listing = "\n".join(f"  --{name}{_shown_options(name)}\n      {PASSES[name].summary}" for name in sorted(PASSES))
    pipelines = "\n".join(
        f"  --{name}\n      {', '.join(step.name for step in steps)}" for name, steps in PIPELINES.items()
    )
    parser = argparse.ArgumentParser(
        "hipdnn-opt",
        description="Run passes on a module. Any pass of MLIR and torch-mlir works too: --canonicalize, --cse, ...",
        epilog=f"passes:\n{listing}\n\npipelines:\n{pipelines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=versions())
    parser.add_argument("file", nargs="?", default="-", help="input, - for standard input")
    parser.add_argument("-o", dest="output", help="output; standard output by default, and for -")
    parser.add_argument(
        "--extension", action="append", metavar="MODULE", help="import a module that adds passes (docs/extending.md)"
    )
    parser.add_argument("--pass-pipeline", help="textual pipeline: builtin.module(a,b{option=value},func.func(c))")
    parser.add_argument(
        "--split-input-file", action="store_true", help="treat each part between // ----- lines as a module of its own"
    )
    parser.add_argument(
        "--verify-diagnostics",
        action="store_true",
        help="compare diagnostics with // expected-error@+N {{text}} comments",
    )
    parser.add_argument("--mlir-print-debuginfo", action="store_true", help="print locations")
    for when in ("before", "after"):
        parser.add_argument(
            f"--mlir-print-ir-{when}-all",
            action="store_true",
            help=f"print the IR {when} every pass, to standard error",
        )
        parser.add_argument(
            f"--mlir-print-ir-{when}",
            action="append",
            metavar="PASS",
            help=f"print the IR {when} these passes: cse,canonicalize",
        )
    parser.add_argument("--mlir-timing", action="store_true", help="print the time of each pass, to standard error")
    return parser


def _shown_options(name: str) -> str:
    return "".join(f" {key}={value}" for key, value in PASSES[name].options.items())


def _from_flags(flags: Sequence[str]) -> str:
    """`--canonicalize --hipdnn-offload=target=host` -> a pipeline."""
    elements = []
    for flag in flags:
        if not flag.startswith("--"):
            raise HipdnnMlirError(f"unknown argument {flag!r}", hint="see hipdnn-opt --help")
        name, _, options = flag.removeprefix("--").partition("=")
        elements.append(f"{name}{{{options}}}" if options else name)
    return ",".join(elements)


def expand(pipeline: str) -> str:
    """Replace our named pipelines by their passes."""
    elements = []
    for element in split_top_level(pipeline):
        steps = PIPELINES.get(element)
        elements += [step.passes for step in steps] if steps else [element]
    return ",".join(elements)


def _run(options: argparse.Namespace, pipeline: str) -> int:
    try:
        text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text()
    except OSError as error:
        raise HipdnnMlirError(f"cannot read: {error.strerror}", where=options.file, hint="check the path") from error
    name = "<stdin>" if options.file == "-" else options.file
    context = make_context()
    outputs, failures = [], 0
    for part in split_source(name, text) if options.split_input_file else [Source(name, text)]:
        diagnostics: list[Diagnostic] = []
        printed = _process(part, pipeline, context, diagnostics, options)
        if options.verify_diagnostics:
            failures += report_unexpected(part, diagnostics)
        elif printed is None:
            failures += 1
            sys.stderr.write("".join(f"{part.message(found)}\n" for found in diagnostics))
        if printed is not None:
            outputs.append(printed)
    if not options.verify_diagnostics:
        _write(options.output, "// -----\n".join(outputs))
    return 1 if failures else 0


def _process(
    source: Source, pipeline: str, context: ir.Context, diagnostics: list[Diagnostic], options: argparse.Namespace
) -> str | None:
    """Parse, run and print one module; None where it failed, the diagnostics then say why."""

    def keep(diagnostic: ir.Diagnostic) -> bool:
        diagnostics.append(Diagnostic(str(diagnostic.location), diagnostic.message))
        return True

    with context, ir.Location.unknown():
        manager = _manager(pipeline, options)
        handler = context.attach_diagnostic_handler(keep)
        try:
            module = ir.Module.parse(source.generic)
            manager.run(module.operation)
            return module_text(module.operation, debug_info=options.mlir_print_debuginfo)
        except Refusal as refusal:
            diagnostics.append(Diagnostic("", f"not a module of the torch dialect: {refusal.reason}"))
            return None
        except (PassError, UnsupportedError) as error:
            error.where = error.where or source.name
            raise
        except ir.MLIRError as error:
            known = {found.message for found in diagnostics}
            diagnostics += [
                Diagnostic(str(found.location), found.message)
                for found in error.error_diagnostics
                if found.message not in known
            ]
            return None
        finally:
            handler.detach()


def _manager(pipeline: str, options: argparse.Namespace) -> PassManager:
    """The pass manager of a pipeline, with what the command line wants to see of it."""
    printers = {
        "Before": (options.mlir_print_ir_before_all, _names(options.mlir_print_ir_before)),
        "After": (options.mlir_print_ir_after_all, _names(options.mlir_print_ir_after)),
    }
    run = {pass_name(element) for element in single_passes(pipeline)}
    unknown = sorted(set().union(*(names for _, names in printers.values())) - run)
    if unknown:
        known = ", ".join(sorted(run)) or "none"
        raise HipdnnMlirError(f"pass {unknown[0]} to print the IR of does not run", expected=f"one of: {known}")

    def look(when: str, element: str, module: ir.Operation) -> None:
        every, names = printers[when]
        if every or pass_name(element) in names:
            text = module_text(module, debug_info=options.mlir_print_debuginfo)
            sys.stderr.write(f"// -----// IR Dump {when} {element} //----- //\n{text}\n")

    manager = build(pipeline, look=look if any(every or names for every, names in printers.values()) else None)
    if options.mlir_timing:
        manager.enable_timing()
    return manager


def _names(given: Sequence[str] | None) -> set[str]:
    return {name for text in given or () for name in text.split(",")}


def _write(path: str | None, text: str) -> None:
    if path in (None, "-"):
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise HipdnnMlirError(f"cannot write: {error.strerror}", where=path, hint="choose another folder") from error


if __name__ == "__main__":
    sys.exit(main() or 0)
