"""The compiler as one page: a model in, a program with its weights out."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from hipdnn_mlir_runtime.errors import RefusedPlan
from hipdnn_mlir_runtime.precision import UNCHANGED, Precision

from ..dynamic.input_sizes import Buckets, Shapes
from ..frontend.model_file import read_model
from ..targets.table import TargetName, find_target
from .lower import lower
from .program import Program

ModelLike = str | Path | bytes | onnx.ModelProto


def compile(  # noqa: A001 - the public name
    model: ModelLike,
    *,
    target: TargetName = "host",
    precision: Precision = UNCHANGED,
    shapes: Shapes | None = None,
    buckets: Buckets | None = None,
    refused: Iterable[RefusedPlan] = (),
    dump_ir: str | Path | None = None,
) -> Program:
    """Compile an ONNX model into a hipDNN program, in this process.

    Args:
        model: path, serialized bytes or loaded model.
        target: whose engines to compile for.
        precision: `model`, or `f16` or `bf16`: what an f32 model runs in where the op table allows it; inputs and outputs keep their types.
            Or `tf32`: as the model is, but products of f32 may round their operands to TF32 where the device has that.
        shapes: sizes that replace the model's: input name -> dims, each a number, the name of a dynamic dimension or `"?"`; or that name
            -> a number or another name. A dimension that stays dynamic is a symbol of the program.
        buckets: name of a dynamic dimension -> ascending sizes that it is padded to when the program runs: inputs are padded, outputs cut
            back, and the program is loaded for these sizes only. For GPUs every dynamic dimension needs some, since code is made for each
            combination of them. If padding a dimension would change results, only the listed sizes are accepted.
        refused: graphs that the library of the device at hand has refused: they are split, then left to kernels of the compiler's own.
        dump_ir: folder for the IR after each step, `NN-<step>.mlir`.

    Raises:
        ModelError: missing or broken model; unknown target, precision, input or size; sizes that do not fit the model.
        PaddingError: the model mixes elements along a size with buckets, so that padding would change what it computes.
        UnsupportedError: operations outside every engine, all of them listed.
        PassError: a defect of this compiler.
    """
    options = {"target": target, "precision": precision, "shapes": shapes, "buckets": buckets}
    return _compiled(model, list(refused), None, dump_ir=dump_ir, **options)


def _compiled(
    model: ModelLike,
    refused: Sequence[RefusedPlan],
    previous: Program | None,
    *,
    dump_ir: str | Path | None = None,
    **options: Any,
) -> Program:
    """Compile a model; of a program with specializations those that nothing is refused of are taken from the previous one."""
    file = read_model(model)
    make = (
        partial(_compile_specializations, previous) if options["buckets"] and has_code(options["target"]) else _compile
    )
    program = make(file.proto, refused=refused, dump_ir=dump_ir, where=_where(model), external=file.external, **options)
    program.model.model["sha256"] = file.sha256
    program.compile_without = lambda more: _compiled(model, [*refused, *more], program, **options)
    return program


def _compile(proto: onnx.ModelProto, **options: Any) -> Program:
    return lower(proto, **options).with_weights()


def _compile_specializations(previous: Program | None, proto: onnx.ModelProto, **options: Any) -> Program:
    from .specializations import compile_specializations

    return compile_specializations(proto, previous=previous, **options)


def has_code(target: str) -> bool:
    """Whether programs for a target hold code, which is made for exact sizes."""
    return find_target(target).architecture is not None


def _where(model: ModelLike) -> str:
    return str(model) if isinstance(model, (str, Path)) else "model"
