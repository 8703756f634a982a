"""The compiler as one page: a model in, a program with its weights out."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from hipdnn_mlir_runtime.errors import ModelError, RefusedPlan, UnsupportedError
from hipdnn_mlir_runtime.precision import UNCHANGED, Precision
from hipdnn_mlir_runtime.pytorch import is_exported, need_torch

from ..dynamic.input_sizes import Buckets, Shapes
from ..targets.table import TargetName, find_target
from .counted import at_bounds
from .lower import lower
from .program import Program
from .source import OnnxSource, Source

if TYPE_CHECKING:
    from torch.export import ExportedProgram
    from torch.nn import Module
    from typing_extensions import TypeIs

    from ..frontend.pytorch.exported import Examples

ModelLike = str | Path | bytes | onnx.ModelProto


def compile(  # noqa: A001 - the public name
    model: "ModelLike | Module | ExportedProgram",
    example_inputs: "Examples | None" = None,
    *,
    dynamic_shapes: Any = None,
    target: TargetName = "host",
    precision: Precision = UNCHANGED,
    shapes: Shapes | None = None,
    buckets: Buckets | None = None,
    page_rows: int | None = None,
    last_valid: Mapping[str, str] | None = None,
    refused: Iterable[RefusedPlan] = (),
    dump_ir: str | Path | None = None,
) -> Program:
    """Compile an ONNX model, or a PyTorch module, into a hipDNN program, in this process.

    Args:
        model: an ONNX model: path, serialized bytes or loaded model. Or one of PyTorch: a `torch.nn.Module`, what `torch.export.export`
            returned, or the path of a `.pt2` file, of which PyTorch may run code.
        example_inputs: of a module: its arguments in a tuple, or its keyword arguments in a dict.
        dynamic_shapes: of a module: which dims of its arguments stay dynamic, as for `torch.export.export`.
        target: whose engines to compile for.
        precision: `model`, or `f16` or `bf16`: what an f32 model runs in where the op table allows it; inputs and outputs keep their types.
            Or `tf32`: as the model is, but products of f32 may round their operands to TF32 where the device has that.
        shapes: sizes that replace the model's: input name -> dims, each a number, the name of a dynamic dimension or `"?"`; or that name
            -> a number or another name. A dimension that stays dynamic is a symbol of the program.
        buckets: name of a dynamic dimension -> ascending sizes that it is padded to when the program runs: inputs are padded, outputs cut
            back, and the program is loaded for these sizes only. For GPUs every dynamic dimension needs some, since code is made for each
            combination of them. If padding a dimension would change results, only the listed sizes are accepted.
        page_rows: of a decoder's ONNX model: lay its caches in pages of so many rows, which all sequences share. The first and the third
            size of its cache inputs are `pages` and this number then, and one more input, `page_table` (i32, batch x `sequence_pages`),
            has the pages of each sequence. For `hipdnn_mlir.generate.BatchGenerator`.
        last_valid: of an ONNX model: output `[batch, sequence, ...]` -> the input that is its mask, `[batch, total]`. Of such an output
            only the last valid position of each row is computed, `[batch, 1, ...]`: there a language model's logits are read. A row of
            which the mask counts less than the sequence is padded on the right.
        refused: graphs that the library of the device at hand has refused: they are split, then left to kernels of the compiler's own.
        dump_ir: folder for the IR after each step, `NN-<step>.mlir`.

    Raises:
        ModelError: missing or broken model; a module that cannot be exported; unknown target, precision, input or size; sizes that do not
            fit the model.
        PaddingError: the model mixes elements along a size with buckets, so that padding would change what it computes.
        UnsupportedError: operations outside every engine, all of them listed.
        PassError: a defect of this compiler.
    """
    source = read_source(model, example_inputs, dynamic_shapes, page_rows)
    if last_valid:
        if not isinstance(source, OnnxSource):
            hint = "return the position from the module"
            raise ModelError("last_valid is for ONNX models", where=str(type(model).__name__), hint=hint)
        source = source.keep_last_valid(last_valid)
    options = {"target": target, "precision": precision, "shapes": shapes, "buckets": buckets}
    return _compiled(source, list(refused), None, dump_ir=dump_ir, **options)


def read_source(
    model: "ModelLike | Module | ExportedProgram",
    example_inputs: "Examples | None" = None,
    dynamic_shapes: Any = None,
    page_rows: int | None = None,
) -> Source[Any]:
    """Read a model; arguments as for `compile`.

    Raises:
        ModelError: missing or broken model; a module that cannot be exported; PyTorch is not installed, and the file is its.
    """
    if _is_torch(model):
        from .torch_source import TorchSource

        _refuse_pages(page_rows, "module")
        return TorchSource.read(model, example_inputs, dynamic_shapes)
    if example_inputs is not None or dynamic_shapes is not None:
        raise ModelError(
            "example_inputs and dynamic_shapes are for PyTorch modules",
            where=str(model) if isinstance(model, (str, Path)) else "model",
            hint="leave them out; see shapes",
        )
    if isinstance(model, (str, Path)) and is_exported(Path(model)):
        need_torch(Path(model))
        from .torch_source import TorchSource

        _refuse_pages(page_rows, str(model))
        return TorchSource.load(Path(model))
    return OnnxSource.read(model, page_rows)


def _refuse_pages(page_rows: int | None, where: str) -> None:
    if page_rows is not None:
        expected = "an ONNX model with GroupQueryAttention"
        raise ModelError("page_rows is for decoders in ONNX", where=where, expected=expected, hint="leave it out")


def _is_torch(model: object) -> "TypeIs[Module | ExportedProgram]":
    """Whether a model is PyTorch's: where PyTorch is not loaded, nothing is."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, (torch.nn.Module, torch.export.ExportedProgram))


def _compiled(
    source: Source[Any],
    refused: Sequence[RefusedPlan],
    previous: Program | None,
    *,
    dump_ir: str | Path | None = None,
    **options: Any,
) -> Program:
    """Compile a model; of a program with specializations those that nothing is refused of are taken from the previous one."""
    make = (
        partial(_compile_specializations, previous) if options["buckets"] and has_code(options["target"]) else _compile
    )
    try:
        program = at_bounds(make, source, refused=refused, dump_ir=dump_ir, **options)
    except UnsupportedError as error:
        error.target = options["target"]  # what refuses nodes before they are placed does not know it
        raise source.located(error) from error
    program.model.model["sha256"] = source.sha256
    program.calling = source.calling
    program.compile_without = lambda more: _compiled(source, [*refused, *more], program, **options)
    return program


def _compile(source: Source[Any], **options: Any) -> Program:
    return lower(source, **options).with_weights()


def _compile_specializations(previous: Program | None, source: Source[Any], **options: Any) -> Program:
    from .specializations import compile_specializations

    return compile_specializations(source, previous=previous, **options)


def has_code(target: str) -> bool:
    """Whether programs for a target hold code, which is made for exact sizes."""
    return find_target(target).architecture is not None
