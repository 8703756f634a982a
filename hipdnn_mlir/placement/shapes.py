"""Static types of all values of a graph; dynamic dimensions are tried with numbers."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx.shape_inference import InferenceError

from hipdnn_mlir_runtime.errors import Reject, UnsupportedError

from ..frontend.constant_folding import fold_constants
from ..frontend.onnx_inference import inferred
from ..frontend.shape_inference import contradicted, infer_shapes, static_dims
from ..ops.strides import Dims
from .graph import OnnxGraph

logger = logging.getLogger(__name__)

PROBES = (2, 1, 64)
"""Numbers tried for dynamic dimensions, the first that fits: 1 where the model insists on it, 64 for images that shrink on the way."""


@dataclass(frozen=True)
class Types:
    """What is known of values before a model runs.

    Attributes:
        dims: value -> its sizes; none for a value whose sizes depend on data.
        kinds: value -> ONNX element type, 0 for what is no tensor.
        probe: the number that stands for dynamic dimensions.
        refused: node -> why an extension refuses it.
    """

    dims: dict[str, Dims]
    kinds: dict[str, int]
    probe: int
    refused: dict[str, Reject] = field(default_factory=dict)


def infer_types(graph: OnnxGraph) -> Types:
    """Infer the types of all values, from the inputs on and from what the model declares."""
    is_open = any(static_dims(value) is None for value in graph.inputs.values())
    fitting = (probe for probe in PROBES if is_open and _fits(graph, probe))
    return _types(graph, next(fitting, PROBES[0]))


def probed_inputs(graph: OnnxGraph, probe: int) -> dict[str, Dims]:
    """Sizes for the graph inputs with dynamic dimensions; inputs of unknown rank stay out."""
    return {
        name: tuple(dim.dim_value if dim.HasField("dim_value") else probe for dim in value.type.tensor_type.shape.dim)
        for name, value in graph.inputs.items()
        if static_dims(value) is None and value.type.tensor_type.HasField("shape")
    }


def drop_contradicted(graph: OnnxGraph) -> dict[str, list[int | str]]:
    """Replace declared sizes that those of the inputs contradict by what follows from these: value -> numbers, and names or `""`."""
    wrong = contradicted(_typed_weights(graph, (v for name, v in graph.declared.items() if name not in graph.inputs)))
    for name, kind in wrong.items():
        graph.declared[name].type.CopyFrom(kind)
    return {name: [_size(dim) for dim in kind.tensor_type.shape.dim] for name, kind in wrong.items()}


def _size(dim: Any) -> int | str:
    return int(dim.dim_value) if dim.HasField("dim_value") else str(dim.dim_param)


def declare_all(graph: OnnxGraph) -> None:
    """Add to what the model declares the types that follow from it with its dimensions left dynamic, where it is silent."""
    if all(name in graph.declared for name in graph.writer):
        return
    try:
        found = inferred(_typed_weights(graph, graph.declared.values()))
    except InferenceError as error:
        logger.debug("no types beyond the declared ones: %s", error)
        return
    for value in found.graph.value_info:
        graph.declared.setdefault(value.name, value)


def _fits(graph: OnnxGraph, probe: int) -> bool:
    """Whether inference takes the number, and leaves no value empty or worse."""
    try:
        found = inferred(_probed(graph, probe), is_strict=True)
    except InferenceError as error:
        logger.debug("dynamic dimensions cannot be %d: %s", probe, error)
        return False
    dims = (static_dims(value) for value in (*found.graph.value_info, *found.graph.output))
    return all(min(known, default=1) > 0 for known in dims if known is not None)


def _types(graph: OnnxGraph, probe: int) -> Types:
    model = _probed(graph, probe)
    dims: dict[str, Dims] = {}
    kinds: dict[str, int] = {}
    refused: list[Reject] = []
    for typed in _inferences(model, refused):
        for value in (*typed.graph.value_info, *typed.graph.output, *typed.graph.input):
            known = static_dims(value)
            if known is not None and min(known, default=0) >= 0:
                dims.setdefault(value.name, known)
            if value.type.tensor_type.elem_type:
                kinds.setdefault(value.name, value.type.tensor_type.elem_type)
        for tensor in typed.graph.initializer:
            dims.setdefault(tensor.name, tuple(tensor.dims))
            kinds.setdefault(tensor.name, tensor.data_type)
    return Types(dims, kinds, probe, {reject.node: reject for reject in refused})


def _inferences(model: onnx.ModelProto, refused: list[Reject]) -> Iterable[onnx.ModelProto]:
    """The model with types as declared, inferred, and inferred with constants folded; `refused` gets what extensions refuse."""
    yield model
    try:
        yield infer_shapes(model, refused)
        yield fold_constants([model])[0].model
    except (InferenceError, UnsupportedError) as error:
        logger.debug("types are the declared ones: %s", error)


def _probed(graph: OnnxGraph, probe: int) -> onnx.ModelProto:
    """The model with a number in the place of every dynamic dimension of its inputs."""
    inputs = (value.type.tensor_type.shape.dim for value in graph.inputs.values())
    symbols = {dim.dim_param for dims in inputs for dim in dims if dim.dim_param}
    model = _typed_weights(graph, (value for name, value in graph.declared.items() if name not in graph.inputs))
    for value in (*model.graph.value_info, *model.graph.output, *model.graph.input):
        for dim in value.type.tensor_type.shape.dim:
            is_input = value.name in graph.inputs and not dim.HasField("dim_value")
            if is_input or dim.dim_param in symbols:
                dim.dim_value = probe
    return model


def _typed_weights(graph: OnnxGraph, declared: Iterable[onnx.ValueInfoProto]) -> onnx.ModelProto:
    """The model with external initializers as inputs, and with the given declarations of values."""
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    del model.graph.initializer[:], model.graph.value_info[:]
    outside = {*graph.inputs, *graph.outputs}
    model.graph.value_info.extend(value for value in declared if value.name not in outside)
    for tensor in graph.model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            model.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        else:
            model.graph.initializer.append(tensor)
    return model
