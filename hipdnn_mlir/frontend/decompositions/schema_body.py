"""Operators that the ONNX standard itself defines by others: its function bodies, instantiated for a node's types."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from ...ops.spec import Refusal
from .call import Call
from .registry import decomposes

BODIES = (
    "CastLike", "CausalConvWithState", "DynamicQuantizeLinear", "Mish", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "SwiGLU",
)  # fmt: skip
"""Operators of ONNX for which the function body in their schema is good."""


@decomposes(*BODIES)
@decomposes("FlexAttention", domain="ai.onnx.preview")
def write_body(call: Call) -> Sequence[str | None]:
    """Write the body that the operator's schema has.

    Source: the schemas of the installed onnx package.
    """
    node, version = call.node, call.opset if not call.node.domain else 1
    if not onnx.defs.has(node.op_type, version, node.domain):
        raise Refusal("operand", f"opset {version} does not have the operator")
    schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    function = _function(call, schema)
    names = {formal: call.arg(index) or "" for index, formal in enumerate(function.input)}
    defaults = (a.default_value for a in schema.attributes.values() if a.default_value.type)
    attributes = {a.name: a for a in (*defaults, *call.node.attribute)}
    instantiate(call, function.node, names, attributes)
    return [names.get(formal) for formal in function.output]


def instantiate(
    call: Call,
    nodes: Iterable[onnx.NodeProto],
    names: dict[str, str],
    attributes: Mapping[str, onnx.AttributeProto],
) -> None:
    """Write a copy of nodes.

    Args:
        call: the call.
        nodes: in order.
        names: what values of the body are here; gets the results of the nodes. Names that it lacks stay.
        attributes: what attributes that the nodes refer to are here.
    """
    for node in nodes:
        _write(call, node, names, attributes)


def own_constants(call: Call, graph: onnx.GraphProto) -> dict[str, str]:
    """The initializers of a branch or body: their names there, and here.

    Raises:
        Refusal: the data of one is in another file, which is read for the main graph alone.
    """
    for tensor in graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise Refusal("operand", f"constant {tensor.name!r} of its body is in another file")
    return {tensor.name: call.const(numpy_helper.to_array(tensor)) for tensor in graph.initializer}


def _function(call: Call, schema: Any) -> onnx.FunctionProto:
    node = call.node
    if schema.has_function:
        versions, read = schema.function_opset_versions, schema.get_function_with_opset_version
        return _parsed(read(_newest(versions, call.opset)))
    types = [call.type(name) if name else None for name in node.input]
    if any(name and kind is None for name, kind in zip(node.input, types, strict=True)):
        raise Refusal("type", "the type of an operand is not known")
    texts = [kind.SerializeToString() if kind is not None else b"" for kind in types]
    version = _newest(schema.context_dependent_function_opset_versions, call.opset)
    body = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), texts)
    if not body:
        raise Refusal("operand", "ONNX's definition of it does not cover these operands")
    return _parsed(body)


def _parsed(body: bytes) -> onnx.FunctionProto:
    function = onnx.FunctionProto()
    function.ParseFromString(body)
    return function


def _newest(versions: Sequence[int], opset: int) -> int:
    """The body written for the newest operator set that is not newer than the model's."""
    return max((version for version in versions if version <= opset), default=min(versions))


def _write(
    call: Call, node: onnx.NodeProto, names: dict[str, str], attributes: Mapping[str, onnx.AttributeProto]
) -> None:
    bound = _bound(node, attributes)
    if node.op_type == "Constant":
        names[node.output[0]] = call.const(_constant(bound.attribute[0]))
        return
    names.update({name: call.fresh() for name in node.output if name})
    bound.name = call.node.name
    for field in (bound.input, bound.output):
        renamed = [names.get(name, name) for name in field]
        del field[:]
        field.extend(renamed)
    for attribute in bound.attribute:
        if attribute.HasField("g"):
            attribute.g.CopyFrom(_subgraph(call, attribute.g, dict(names), attributes))
    call.emit(bound)


def _bound(node: onnx.NodeProto, attributes: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """The node with the attributes of the call in the place of references to them."""
    bound = onnx.NodeProto()
    bound.CopyFrom(node)
    del bound.attribute[:]
    for attribute in node.attribute:
        source = attributes.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
        if source is not None:
            copy = bound.attribute.add()
            copy.CopyFrom(source)
            copy.name = attribute.name
    return bound


def _constant(attribute: onnx.AttributeProto) -> object:
    if attribute.name == "value":
        return numpy_helper.to_array(attribute.t)
    value = onnx.helper.get_attribute_value(attribute)
    return np.asarray(value, np.float32 if attribute.name.startswith("value_float") else np.int64)


def _subgraph(
    call: Call, graph: onnx.GraphProto, names: dict[str, str], attributes: Mapping[str, onnx.AttributeProto]
) -> onnx.GraphProto:
    """The body of a node with names of this call."""
    result = onnx.GraphProto()
    result.CopyFrom(graph)
    inner = [*(value.name for value in graph.input), *(name for node in graph.node for name in node.output if name)]
    names.update({name: call.fresh() for name in inner})
    del result.node[:]
    for node in graph.node:
        bound = _bound(node, attributes)
        for field in (bound.input, bound.output):
            renamed = [names.get(name, name) for name in field]
            del field[:]
            field.extend(renamed)
        for attribute in bound.attribute:
            if attribute.HasField("g"):
                attribute.g.CopyFrom(_subgraph(call, attribute.g, dict(names), attributes))
        result.node.append(bound)
    for value in (*result.input, *result.output):
        value.name = names[value.name]
    return result
