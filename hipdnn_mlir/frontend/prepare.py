"""A model made ready for import: upgraded, static dims, constants folded, large initializers taken out."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import onnx
from onnx import numpy_helper

from hipdnn_mlir_runtime.dtypes import U8
from hipdnn_mlir_runtime.errors import ModelError, Reject

from ..dynamic.each_sample import each_sample
from ..dynamic.facts import Fact
from ..ir.imported import Weights
from ..ops.evaluate import Array
from ..ops.strides import Dims
from .check import check_constants, check_element_types, check_model, check_outputs
from .constant_branches import write_choices
from .conversions import cut_by_slices, drop_dropout, shrink_windows, split_to_slices
from .decompositions import decompose_and_fold, inline_local_functions
from .decompositions.registry import CONTRIB
from .in_order import without_gathers_in_order
from .onnx_types import BY_ONNX
from .operands import derive_shape_operands, known_operand_names
from .quantized_forms import write_integer_forms
from .quantized_moves import move_integers, state_constants
from .repeated_weights import without_repeated_weights
from .shape_inference import SizesContradictError, drop_contradicted, static_dims
from .sizing_inputs import sizing_inputs
from .sizing_rules import Numbers
from .square_masks import widen_square_masks
from .subgraphs import drop_unused, name_apart, name_default_domain
from .unread_columns import without_unread_columns
from .unread_rows import without_unread_rows

logger = logging.getLogger(__name__)

OLDEST_OPSET, UPGRADED_OPSET = 17, 21
"""torch-mlir's conversions are complete from about opset 17; older models are upgraded by onnx's own converter."""
_BITWISE_OPSET = 18
"""What ONNX Runtime's operators on codes are written out in has bitwise operators, which are there from this opset on."""
RESIZE_HAS_MODES = 11
MAX_LITERAL_ELEMENTS = 1
LARGE_ELEMENTS = 1024
"""Initializers up to this size take part in constant folding; larger ones never leave NumPy."""
_SHAPE_LIKE = frozenset({"Resize", "Upsample", "ConstantOfShape", "Range"})


@dataclass
class Slim:
    """A model without large initializers (they become inputs), upgraded, with static shapes and constants folded.

    Attributes:
        model: the model.
        weights: the constants: initializer -> array.
        where: the model's file, for messages.
        facts: what is assumed of dynamic dimensions.
        sizing: inputs that sizes follow from -> per element the numbers that it may be.
        refused: nodes whose declared sizes no run can check.
    """

    model: onnx.ModelProto
    weights: Weights
    where: str
    facts: tuple[Fact, ...] = ()
    sizing: dict[str, Numbers] = field(default_factory=dict)
    refused: Sequence[Reject] = ()


def slim_models(
    model: onnx.ModelProto,
    points: Sequence[Mapping[str, Dims]],
    where: str = "model",
    external: Mapping[str, Array] | None = None,
) -> list[Slim]:
    """The model as it is imported, with given dims of its inputs.

    Args:
        model: the model; not modified.
        points: input name -> dims that replace the model's; several for a model with dynamic dimensions, prepared alike for each.
        where: the model's file, for messages.
        external: arrays of the initializers whose data is outside the model. Their values take no part in the conversion, so that arrays
            of the right dims and dtype may stand in for them.

    Raises:
        ModelError: invalid model, unknown input name, shapes that do not fit.
    """
    check_constants(model.graph, external or {}, where)
    check_outputs(model.graph, where)
    prepared = _at_points(model, points, external or {}, where)
    try:
        for slim, _ in prepared:
            drop_contradicted(slim)
        folded = decompose_and_fold([slim for slim, _ in prepared])
        folded = [replace(found, model=write_choices(found.model)) for found in folded]
        is_fixed = all(static_dims(value) is not None for value in model.graph.input)
        without_rows = partial(without_unread_rows, has_fixed_sizes=is_fixed)
        made_of_weights = [{*weights, *found.large} for (_, weights), found in zip(prepared, folded, strict=True)]
        once = partial(without_repeated_weights, weights=set().union(*made_of_weights))
        for simplify in (without_gathers_in_order, *([without_unread_columns] if is_fixed else ()), without_rows, once):
            simple = [simplify(found.model) for found in folded]
            if len({tuple((node.op_type, *node.input) for node in model.graph.node) for model in simple}) == 1:
                folded = [replace(found, model=model) for found, model in zip(folded, simple, strict=True)]
        sizing = [_all_sizing_inputs(slim, found.model) for (slim, _), found in zip(prepared, folded, strict=True)]
        for found in folded:
            derive_shape_operands(found.model)
            shrink_windows(found.model)
            split_to_slices(found.model)
            cut_by_slices(found.model)
    except onnx.checker.ValidationError as error:
        raise ModelError(
            f"not a valid ONNX model: {error}", where=where, hint="run onnx.checker on the model"
        ) from error
    except SizesContradictError as error:
        error.where = where
        raise
    except onnx.shape_inference.InferenceError as error:
        raise ModelError(
            f"shapes contradict each other: {error}", where=where, hint="run onnx.checker on the model"
        ) from error
    made, sizes = [], _varying([found.model.graph for found in folded])
    for found, (_, weights), (numbers, refused) in zip(folded, prepared, sizing, strict=True):
        keep, small = _split_initializers(found.model.graph, MAX_LITERAL_ELEMENTS, {}, sizes)
        del found.model.graph.initializer[:]
        found.model.graph.initializer.extend(keep)
        _add_inputs(found.model.graph, small)
        made.append(Slim(found.model, weights | found.large | small, where, found.facts, numbers, refused))
    return made


def _all_sizing_inputs(slim: onnx.ModelProto, folded: onnx.ModelProto) -> tuple[dict[str, Numbers], list[Reject]]:
    """As `sizing_inputs`; those of operators that are decomposed, too, which take no others."""
    found, refused = sizing_inputs(folded.graph)
    return sizing_inputs(slim.graph)[0] | found, refused


def _at_points(
    model: onnx.ModelProto, points: Sequence[Mapping[str, Dims]], external: Mapping[str, Array], where: str
) -> list[tuple[onnx.ModelProto, Weights]]:
    """As `_without_weights`, at each point."""
    first: list[tuple[onnx.ModelProto, Weights]] = []

    def at(shapes: Mapping[str, Dims]) -> tuple[onnx.ModelProto, Weights]:
        if not first or _version(first[0][0]) != _version(model):  # onnx's converter of versions regards sizes
            first[:] = [_without_weights(model, shapes, external, where)]
            return first[0]
        done, weights = first[0]
        slim = onnx.ModelProto()
        slim.CopyFrom(done)
        _set_shapes(slim, shapes)
        return slim, weights

    return each_sample(at, points)


def _version(model: onnx.ModelProto) -> list[int]:
    return [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]


def _without_weights(
    model: onnx.ModelProto, shapes: Mapping[str, Dims], external: Mapping[str, Array], where: str
) -> tuple[onnx.ModelProto, Weights]:
    """A copy in which large initializers are inputs, upgraded, and the initializers."""
    keep, weights = _split_initializers(model.graph, LARGE_ELEMENTS, external)
    slim = onnx.ModelProto()
    slim.ir_version = max(model.ir_version, 8)  # before 4, initializers had to be inputs
    slim.opset_import.extend(model.opset_import)
    slim.functions.extend(model.functions)
    graph = slim.graph
    graph.name = model.graph.name or "model"
    graph.node.extend(model.graph.node)
    name_default_domain(slim)
    name_apart(graph)
    name_nodes(graph)
    initialized = {tensor.name for tensor in model.graph.initializer}
    graph.input.extend(value for value in model.graph.input if value.name not in initialized)
    graph.output.extend(model.graph.output)
    graph.value_info.extend(model.graph.value_info)
    graph.initializer.extend(keep)
    _set_shapes(slim, shapes)
    _add_inputs(graph, weights)
    if all(entry.domain for entry in slim.opset_import):  # the importer wants to know all the same
        slim.opset_import.append(onnx.helper.make_opsetid("", UPGRADED_OPSET))
    check_model(slim, where)
    check_element_types(slim, where)
    slim = inline_local_functions(slim)
    has_contrib = any(node.domain == CONTRIB for node in slim.graph.node)
    slim = upgraded(slim, where, _BITWISE_OPSET if has_contrib else OLDEST_OPSET)
    drop_unused(slim.graph)
    drop_dropout(slim)
    widen_square_masks(slim.graph)
    state_constants(slim.graph)
    move_integers(slim.graph)
    write_integer_forms(slim, weights)
    return slim, weights


def name_nodes(graph: onnx.GraphProto) -> None:
    """Give every node a name of its own, which messages and reports use; names that are unique stay."""
    taken: set[str] = set()
    for index, node in enumerate(graph.node):
        wanted = node.name or f"{node.op_type}_{index}"
        name, count = wanted, 1
        while name in taken:
            name, count = f"{wanted}#{count}", count + 1
        node.name = name
        taken.add(name)


def _add_inputs(graph: onnx.GraphProto, weights: Weights) -> None:
    for name, array in weights.items():
        graph.input.append(
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        )


def _varying(graphs: Sequence[onnx.GraphProto]) -> set[str]:
    """The initializers that are made of dynamic dimensions: graphs at several sizes have others."""
    if len(graphs) == 1:
        return set()
    columns = zip(*([tensor.SerializeToString() for tensor in graph.initializer] for graph in graphs), strict=True)
    return {t.name for t, stored in zip(graphs[0].initializer, columns, strict=True) if len(set(stored)) > 1}


def _split_initializers(
    graph: onnx.GraphProto, limit: int, external: Mapping[str, Array], sizes: Collection[str] = ()
) -> tuple[list[onnx.TensorProto], Weights]:
    """Initializers that stay in the IR (numbers, shapes, axes), and the constants.

    Those are external ones, and floats and bytes of more than `limit` elements, unless they are among `sizes`.
    """
    shape_like = {name for node in graph.node if node.op_type in _SHAPE_LIKE for name in node.input}
    shape_like |= known_operand_names(graph) | {*sizes}
    keep, weights = [], {}
    for tensor in graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            weights[tensor.name] = external[tensor.name]
            continue
        kind = BY_ONNX.get(tensor.data_type)
        count = int(np.prod(tensor.dims)) if tensor.dims else 1
        if kind is None or not (kind.is_float or kind is U8) or count <= limit or tensor.name in shape_like:
            keep.append(tensor)
        else:
            weights[tensor.name] = numpy_helper.to_array(tensor)
    return keep, weights


def with_shapes(model: onnx.ModelProto, shapes: Mapping[str, Dims]) -> onnx.ModelProto:
    """A copy whose inputs have the given dims."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    _set_shapes(made, shapes)
    return made


def _set_shapes(model: onnx.ModelProto, shapes: Mapping[str, Dims]) -> None:
    """Give inputs new dims; what the model declares of other values is dropped where that changes anything."""
    inputs = {value.name: value for value in model.graph.input}
    changes = False
    for name, dims in shapes.items():
        changes |= static_dims(inputs[name]) != tuple(dims)
        shape = inputs[name].type.tensor_type.shape
        shape.ClearField("dim")
        for size in dims:
            shape.dim.add().dim_value = size
    if changes:
        del model.graph.value_info[:]
        for value in model.graph.output:  # inferred again: what was declared may belong to other sizes
            value.type.tensor_type.ClearField("shape")


def upgraded(model: onnx.ModelProto, where: str, oldest: int = OLDEST_OPSET) -> onnx.ModelProto:
    """The model as it is, or in UPGRADED_OPSET where its opset is older than another one.

    Raises:
        ModelError: onnx's converter cannot do that.
    """
    version = next(entry.version for entry in model.opset_import if not entry.domain)
    if version >= oldest:
        return model
    logger.info("upgrading from opset %d to %d", version, UPGRADED_OPSET)
    message, hint = (
        f"cannot be upgraded from opset {version} to {UPGRADED_OPSET}",
        f"export it with opset {UPGRADED_OPSET}",
    )
    try:
        upgraded = onnx.version_converter.convert_version(model, UPGRADED_OPSET)
    except (onnx.version_converter.ConvertError, RuntimeError, ValueError) as error:
        raise ModelError(f"{message}: {str(error).splitlines()[0]}", where=where, hint=hint) from error
    for before, after in zip(model.graph.input, upgraded.graph.input, strict=True):
        if static_dims(before) != static_dims(after):  # what onnx's converter does to Scan-8
            raise ModelError(f"{message}: the dims of {before.name!r} change", where=where, hint=hint)
    if version < RESIZE_HAS_MODES:
        _keep_coordinates(upgraded.graph)
    return upgraded


def _keep_coordinates(graph: onnx.GraphProto) -> None:
    """Have a Resize that was an Upsample, or one of opset 10, find its pixels as those did, which onnx's converter forgets."""
    for node in graph.node:
        if node.op_type == "Resize" and all(a.name != "coordinate_transformation_mode" for a in node.attribute):
            node.attribute.append(onnx.helper.make_attribute("coordinate_transformation_mode", "asymmetric"))
            node.attribute.append(onnx.helper.make_attribute("nearest_mode", "floor"))
