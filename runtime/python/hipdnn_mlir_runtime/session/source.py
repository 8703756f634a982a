"""Where a session's program comes from: a file, or the compiler in this process, which can make it again without refused graphs."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from .. import _runtime
from ..errors import ModelError, PlanRefusedError, ProgramError, RefusedPlan
from ..pytorch import SUFFIX
from .arrays import Array, as_bytes
from .recovery import Refusals

_MOST_SHOWN = 3

logger = logging.getLogger("hipdnn_mlir_runtime.session")


class ProgramInMemory(Protocol):
    """A program that is not in a file."""

    @property
    def text(self) -> str:
        """The program, JSON as ``docs/program-format.md`` describes it."""

    @property
    def tensors(self) -> Mapping[str, Array]:
        """Its constants by name."""


Source = str | os.PathLike[str] | ProgramInMemory
"""A path, or a program in memory."""


def read(source: Source, *, allow_code: bool, trusted_key: str | None = None) -> _runtime.Program:
    """Return the program, checked.

    Args:
        source: A path, or a program in memory.
        allow_code: Whether it may hold code for a GPU.
        trusted_key: Path of the public key that it has to be signed for; None where it need not be.

    Raises:
        ModelError: The source is a model, neither a path nor a program, or in memory with a key.
        ProgramError: The file is not a program, is broken, too new, not signed, or holds code that it may not.
    """
    if trusted_key is not None:
        _check_signature(source, trusted_key)
    program = _parsed(source)
    kernels = [] if allow_code else program.code_kernels
    if kernels:
        more = f" and {len(kernels) - _MOST_SHOWN} more" if len(kernels) > _MOST_SHOWN else ""
        raise ProgramError(
            "it holds code for a GPU, which is not allowed here (`allow_code`)",
            where=str(source) if isinstance(source, str | os.PathLike) else None,
            expected="a program without code",
            got=f"code in the kernels {', '.join(map(repr, kernels[:_MOST_SHOWN]))}{more}",
            hint="compile the model yourself, or allow code if you would run a program of its author",
        )
    return program


def _check_signature(source: Source, key: str) -> None:
    if not isinstance(source, str | os.PathLike):
        raise ModelError("a program in memory has no signature", where="trusted_key", expected="a program file")
    from ..signature import verify

    try:
        verify(Path(source), Path(key))
    except OSError as error:
        raise ModelError(f"cannot read: {error.strerror}", where=str(error.filename), hint="check the path") from error


def _parsed(source: Source) -> _runtime.Program:
    if isinstance(source, str | os.PathLike):
        kind = kind_of_model(Path(source))
        if kind is not None:
            hint = "compile it first, with hipdnn_mlir.compile or the command hipdnn-mlir"
            raise ModelError(kind, where=str(source), expected="a program file (.hipdnn)", hint=hint)
        return _runtime.Program.load(str(Path(source)))
    text = getattr(source, "text", None)  # a property that writes the program anew: asked for once
    if text is None:
        expected = "the path of a program file (.hipdnn), or what hipdnn_mlir.compile returned"
        raise ModelError("no program", expected=expected, got=type(source).__name__)
    return _runtime.Program.parse(text, {name: as_bytes(array) for name, array in source.tensors.items()})


def kind_of_model(path: Path) -> str | None:
    """Return what a path names that has to be compiled first, by its suffix; None for anything else."""
    return {".onnx": "an ONNX model", SUFFIX: "an exported PyTorch program"}.get(path.suffix)


def known_of(program: _runtime.Program, refusals: Refusals) -> list[RefusedPlan]:
    """Return what the library has refused before, if a graph of the program is among it; other forms of it may be, too."""
    known = refusals.known()
    if known:
        names = {executable["name"] for executable in json.loads(program.text)["executables"]}
        if not any(plan.graph in names for plan in known):
            return []
        logger.info("graphs that the library has refused before are compiled otherwise")
    return known


def without(source: Source, refused: Sequence[RefusedPlan]) -> Source:
    """Return the program without graphs that the device's library refuses, where it can be compiled again."""
    compile_without = getattr(source, "compile_without", None)
    if compile_without is None:
        raise PlanRefusedError(refused, where=str(source) if isinstance(source, str | os.PathLike) else None)
    program: ProgramInMemory = compile_without(refused)
    return program
