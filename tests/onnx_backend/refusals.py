"""Why refused node cases stay refused: one class for each."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from hipdnn_mlir.frontend.decompositions.random_numbers import RANDOM

SIZES, TYPES, TRAINING, DESIGN = "sizes", "strings, sequences, maps", "training", "by design"
NOT_DONE = "not done yet"
_TRAINING_DOMAIN = "ai.onnx.preview.training"
BY_DESIGN = {
    "ImageDecoder": "files of images are decoded before a program runs",
    "Scan": "the form of opset 8, which has a batch, is no longer in ONNX: opset 9 replaced it",
}
"""Operators with cases that are refused for good, and why."""
_AT_ALL_SIZES = frozenset({"MaxUnpool", "Unique"})
"""Operators that are refused even where the sizes are known or have a bound."""
_SEEDLESS = "random numbers without a seed differ from run to run, and results of a program do not"

CLASSES = {
    SIZES: "Only the data of a run decides the sizes of results. They follow from a few numbers among the inputs of the run (Range, Slice, "
    "Pad, scales and sizes of Resize, axes of reductions, lengths of windows, steps of Loop, how many boxes NonMaxSuppression may keep): a "
    "run would have to read an input to know its sizes. Where these numbers are constants of the model, all of these operators compile.",
    TYPES: "A program has tensors of numbers only.",
    TRAINING: "A program infers: optimizers are left to frameworks.",
    DESIGN: "; ".join([*(f"{operator}: {why}" for operator, why in BY_DESIGN.items()), _SEEDLESS]) + ".",
    NOT_DONE: "All others: nothing but work is in the way.",
}
"""Class -> what is in it."""


def class_of(operator: str, model: onnx.ModelProto, reasons: Sequence[str]) -> str:
    """Return the class of a refused case.

    Args:
        operator: Of the case.
        model: Of the case.
        reasons: Of the refusal, each with the rule at its end.
    """
    if not all(_is_of_numbers(value.type) for value in (*model.graph.input, *model.graph.output)):
        return TYPES
    if any(node.domain == _TRAINING_DOMAIN for node in model.graph.node):
        return TRAINING
    if operator in BY_DESIGN or any(reason.endswith(f"[{RANDOM}]") for reason in reasons):
        return DESIGN
    if any(node.op_type in _AT_ALL_SIZES for node in model.graph.node):
        return NOT_DONE
    return SIZES if _has_open_sizes(model) else NOT_DONE


def _is_of_numbers(kind: onnx.TypeProto) -> bool:
    return kind.HasField("tensor_type") and kind.tensor_type.elem_type != onnx.TensorProto.STRING


def _has_open_sizes(model: onnx.ModelProto) -> bool:
    """Whether the sizes of some result do not follow from those of the inputs; what the case declares is what its data gives."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    for value in bare.graph.output:
        value.type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(bare, data_prop=True)
    kinds = [value.type.tensor_type for value in inferred.graph.output]
    return any(not kind.HasField("shape") or not all(d.HasField("dim_value") for d in kind.shape.dim) for kind in kinds)
