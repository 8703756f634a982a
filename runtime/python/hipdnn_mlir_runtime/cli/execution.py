"""One use of a program from the command line: inputs, a run, timing, and comparison with ONNX Runtime or PyTorch."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from .. import _runtime
from ..errors import ModelError
from ..pytorch import is_exported
from ..session.options import SessionOptions
from ..session.profiling.profile import Profile, profile
from ..session.session import Session
from . import arrays, pytorch, render
from .arrays import Array, Difference
from .inputs import Given, Inputs
from .measure import Timing, interleave
from .tables import line_width

RunReference = Callable[[Mapping[str, Array]], Sequence[Array]]
_HERE = "hipdnn-mlir"
REFERENCES = {"ort": "ONNX Runtime CPU", "torch": "PyTorch CPU"}
"""What computes references -> what tables call it."""


@dataclass(frozen=True)
class Options:
    """What to do with a program.

    Attributes:
        inputs: What is said of inputs.
        output: The ``.npz`` file to write, or None.
        reference: The model to compare with, or None.
        compare: What runs that model: a name in ``REFERENCES``.
        rtol: Relative tolerance, or None for the element type's.
        atol: Absolute tolerance, or None for the element type's.
        repeat: Timed runs.
        is_profiled: Whether each step is timed, too.
        session: Options of the session; its threads are the reference's too.
    """

    inputs: Given = field(default_factory=Given)
    output: Path | None = None
    reference: Path | None = None
    compare: str = "ort"
    rtol: float | None = None
    atol: float | None = None
    repeat: int = 0
    is_profiled: bool = False
    session: SessionOptions = field(default_factory=SessionOptions)


@dataclass(frozen=True)
class Report:
    """Outputs of a run, and what was asked about them.

    Attributes:
        outputs: By name.
        differences: From the reference, where one was asked for.
        timings: Of the program and of the reference, where asked for.
        profile: Of the program, where asked for.
        reference: What tables call the reference.
    """

    outputs: Mapping[str, Array]
    differences: Sequence[Difference]
    timings: Mapping[str, Timing]
    profile: Profile | None = None
    reference: str = ""

    @property
    def is_within_tolerance(self) -> bool:
        """Whether no output differs from its reference; true where nothing was compared."""
        return all(row.within for row in self.differences)

    def __str__(self) -> str:
        parts = [render.outputs(self.outputs)]
        if self.differences:
            parts.append(render.differences(self.differences, self.reference))
        if self.timings:
            parts.append(render.timings(self.timings))
        if self.profile is not None:
            parts.append("\n".join(self.profile.lines(line=line_width())))
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form, without the values; of their range what is no finite number, which JSON has not, is None."""

        def shown(array: Array) -> dict[str, Any]:
            found = render.value_range(array).items()
            finite = {name: number if number is not None and math.isfinite(number) else None for name, number in found}
            return {"dtype": str(array.dtype), "dims": list(array.shape), **finite}

        return {
            "outputs": [{"name": name, **shown(array)} for name, array in self.outputs.items()],
            "differences": [row.to_dict() for row in self.differences],
            "timings": {name: timing.to_dict() for name, timing in self.timings.items()},
            "profile": None if self.profile is None else self.profile.to_dict(),
        }


def execute(program: Path, options: Options) -> Report:
    """Run a program file once, and then as often and beside whatever the options ask for.

    Raises:
        HipdnnMlirError: The program, its inputs or the reference model are wrong.
    """
    session = Session(program, **options.session)
    inputs = Inputs(session, options.inputs)
    feeds = inputs.draw()
    names = [port.name for port in session.outputs]
    outputs = dict(zip(names, session.run(None, feeds), strict=True))
    subjects: dict[str, Callable[[], object]] = {_HERE: lambda: session.run(None, feeds)}
    differences: list[Difference] = []
    if options.reference is not None:
        run_reference = reference_runner(options.compare, options.reference, names, options.session.get("threads", 0))
        differences = _compared(outputs, run_reference, feeds, inputs.draw_others(feeds), options)
        subjects[REFERENCES[options.compare]] = partial(run_reference, feeds)
    if options.output is not None:
        arrays.write_arrays(options.output, outputs)
    timings = interleave(subjects, options.repeat) if options.repeat else {}
    profiled = profile(session, feeds) if options.is_profiled else None
    return Report(outputs, differences, timings, profiled, REFERENCES[options.compare])


def is_made_from(program: Path, model: Path) -> bool:
    """Return whether a program was compiled from this very ONNX file; true where that cannot be told."""
    digest: str = json.loads(_runtime.Program.load(str(program)).text)["model"]["sha256"]
    if not digest or is_exported(model):
        return True
    with model.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    return found == digest


def _compared(
    outputs: Mapping[str, Array],
    run_reference: RunReference,
    feeds: Mapping[str, Array],
    others: Mapping[str, Array] | None,
    options: Options,
) -> list[Difference]:
    """Return how far outputs lie from those of the reference, and which of these are the same for other inputs."""

    def compared(name: str, got: Array, want: Array) -> Difference:
        return arrays.compare(name, got, want, options.rtol, options.atol)

    wanted = run_reference(feeds)
    by_others = [None] * len(wanted) if others is None else run_reference(others)
    rows = []
    for (name, got), want, other in zip(outputs.items(), wanted, by_others, strict=True):
        constant = arrays.is_constant(want, other, lambda a, b: compared("", a, b).within)
        rows.append(replace(compared(name, got, want), constant=constant))
    return rows


def reference_runner(
    name: str, model: Path, names: Sequence[str], threads: int = 0, *, as_installed: bool = False
) -> RunReference:
    """Return a function that runs a model elsewhere on the CPU, from inputs by name to outputs.

    Args:
        name: In ``REFERENCES``.
        model: An ONNX or `.pt2` file.
        names: Outputs to return, in this order.
        threads: Threads of it; 0 for all.
        as_installed: Whether it may round what the model does not, as it does by itself, where that takes less time.

    Raises:
        ModelError: It is not installed, or refuses the model; the function raises it where the inputs are refused.
    """
    if name == "torch":
        return pytorch.reference_runner(model, names, threads)
    return _onnxruntime(model, names, threads, as_installed)


def _onnxruntime(model: Path, names: Sequence[str], threads: int, as_installed: bool) -> RunReference:
    if is_exported(model):
        raise ModelError("ONNX Runtime runs no PyTorch programs", where=str(model), hint="compare with torch")
    try:
        import onnxruntime as ort
    except ImportError as error:
        raise ModelError(
            "ONNX Runtime is not installed", where="--compare ort", hint="pip install onnxruntime"
        ) from error
    settings = ort.SessionOptions()
    settings.log_severity_level = 4  # errors are exceptions
    settings.intra_op_num_threads = threads
    if not as_installed:
        # Else a MatMul with weights from DequantizeLinear of 4 bits has its other operand rounded to 8 bits.
        settings.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    # ONNX Runtime's exceptions share no base class but Exception.
    try:
        session = ort.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ModelError(f"ONNX Runtime refuses the model: {error}", where=str(model)) from error

    def run(feeds: Mapping[str, Array]) -> Sequence[Array]:
        try:
            results: Sequence[Array] = session.run(list(names), dict(feeds))
        except Exception as error:
            raise ModelError(f"ONNX Runtime refuses the inputs: {error}", where=str(model)) from error
        return results

    return run
