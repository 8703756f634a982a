"""hipdnn-opt: run passes, ours and MLIR's, on a .mlir file, as mlir-opt does."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from torch_mlir import ir

from hipdnn_mlir_runtime.errors import HipdnnMlirError

from ..extension import load_extensions
from ..ir.dialect import make_context
from ..ir.module_pass import PASSES
from ..ops.spec import Refusal
from ..passes.pipeline import PIPELINES, build, split_top_level

_SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)
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
    parts = _SPLIT.split(text) if options.split_input_file else [text]
    context = make_context()
    outputs, failures = [], 0
    for part in parts:
        diagnostics: list[_Kept] = []
        printed = _process(part, pipeline, context, diagnostics, debug_info=options.mlir_print_debuginfo)
        if options.verify_diagnostics:
            failures += _unexpected(part, diagnostics)
        elif printed is None:
            failures += 1
            sys.stderr.write("".join(f"{d.location}: error: {d.message}\n" for d in diagnostics))
        if printed is not None:
            outputs.append(printed)
    if not options.verify_diagnostics:
        _write(options.output, "// -----\n".join(outputs))
    return 1 if failures else 0


def _process(
    text: str, pipeline: str, context: ir.Context, diagnostics: list["_Kept"], *, debug_info: bool
) -> str | None:
    """Parse, run and print one module; None where it failed, the diagnostics then say why."""

    def keep(diagnostic: ir.Diagnostic) -> bool:
        diagnostics.append(_Kept(str(diagnostic.location), diagnostic.message))
        return True

    with context, ir.Location.unknown():
        handler = context.attach_diagnostic_handler(keep)
        try:
            module = ir.Module.parse(text)
            build(pipeline).run(module.operation)
            return str(module.operation.get_asm(enable_debug_info=debug_info)).rstrip() + "\n"
        except Refusal as refusal:
            diagnostics.append(_Kept("module", f"not a module of the torch dialect: {refusal.reason}"))
            return None
        except ir.MLIRError as error:
            known = {d.message for d in diagnostics}
            diagnostics += [
                _Kept(str(d.location), d.message) for d in error.error_diagnostics if d.message not in known
            ]
            return None
        finally:
            handler.detach()


class _Kept:
    """A diagnostic that outlives the callback that reported it."""

    def __init__(self, location: str, message: str) -> None:
        self.location = location
        self.message = message


_EXPECTED = re.compile(r"expected-error(?:@([+-]\d+))?\s*\{\{(.*?)\}\}")


def _unexpected(text: str, diagnostics: Sequence[_Kept]) -> int:
    """Report expectations without a diagnostic and diagnostics nobody expected; returns their number."""
    expected = [
        (index + 1 + int(m.group(1) or 0), m.group(2))
        for index, line in enumerate(text.splitlines())
        for m in _EXPECTED.finditer(line)
    ]
    left = list(diagnostics)
    problems = []
    for line, message in expected:
        found = next(
            (d for d in left if message in d.message and (f":{line}:" in d.location or "unknown" in d.location)), None
        )
        if found is None:
            problems.append(f"line {line}: expected error {message!r} was not produced")
        else:
            left.remove(found)
    problems += [f"{d.location}: unexpected error: {d.message}" for d in left]
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    return len(problems)


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
