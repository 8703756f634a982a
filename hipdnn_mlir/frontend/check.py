"""Whether a model is a valid one, before anything else looks at it: onnx's checker is asked."""

import re
from collections.abc import Mapping
from functools import cache

import onnx
from google.protobuf.message import Message
from onnx import numpy_helper

from hipdnn_mlir_runtime.errors import ModelError

from ..ops.evaluate import Array
from .model_file import attribute_tensors
from .onnx_inference import inferred, naming_short_operands
from .own_operators import RESULTS
from .subgraphs import all_nodes

_EQUATION = re.compile(rb"[A-Za-z,.> -]*")
_ANYTHING = frozenset(
    {"starts", "ends", "value_int", "value_ints", "value_string", "value_strings", "pool_int64s", "pool_strings"}
)
"""Attributes whose numbers may have 64 bits, and whose texts may be any bytes."""
_UNCHECKED = "hipdnn_mlir.unchecked"
"""The domain, while the checker looks, of our own operators, whose attributes it does not know, of unknown and of deprecated ones."""


def check_model(model: onnx.ModelProto, where: str) -> None:
    """Ask onnx's checker.

    Outputs without a type or shape pass, as in ONNX Runtime, and branches whose outputs are constants or values of the graph around them.

    Args:
        model: without large initializers; not modified.
        where: the model's file, for messages.

    Raises:
        ModelError: it refuses the model.
    """
    checked = _forgiven(model)
    checked.opset_import.add(domain=_UNCHECKED, version=1)
    version = next((entry.version for entry in model.opset_import if not entry.domain), 1)
    for node in all_nodes(checked.graph):
        _check_equation(node, where)
        _check_attributes(node, where)
        _check_counts(node, where)
        if _is_unchecked(node, version):
            node.domain = _UNCHECKED
    try:
        onnx.checker.check_model(checked)
    except onnx.checker.ValidationError as error:
        raise _invalid(error, where) from error


def _check_equation(node: onnx.NodeProto, where: str) -> None:
    """Refuse characters of an Einsum on which onnx's inference (1.23.2) does not end."""
    equation = next((attribute.s for attribute in node.attribute if attribute.name == "equation"), b"")
    if node.op_type == "Einsum" and not _EQUATION.fullmatch(equation):
        message = (
            f"the equation of Einsum {node.name!r} has other characters than letters, commas, dots, spaces and an arrow"
        )
        raise ModelError(message, where=where, got=repr(equation.decode(errors="replace")))


def _check_attributes(node: onnx.NodeProto, where: str) -> None:
    """Refuse texts that are none, and numbers of more than 32 bits, of which onnx's inference (1.23.2) takes the lower ones, or dies."""
    if (node.domain, node.op_type) in RESULTS:
        return
    for attribute in node.attribute:
        if attribute.name in _ANYTHING:
            continue
        wide = [str(n) for n in (attribute.i, *attribute.ints) if not -(1 << 31) <= n < 1 << 31]
        broken = [repr(s) for s in (attribute.s, *attribute.strings) if not _is_text(s)]
        for got in (*wide, *broken):
            message = f"{attribute.name} of {node.op_type} {node.name!r} is out of range"
            raise ModelError(message, where=where, expected="numbers of 32 bits, text in UTF-8", got=got)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _check_counts(node: onnx.NodeProto, where: str) -> None:
    """Refuse a Split into other than its results, and a batch of less than no dims: onnx's inference (1.23.2) dies on both."""
    for attribute in node.attribute:
        expected = None
        if (node.op_type, attribute.name) == ("Split", "num_outputs") and attribute.i != len(node.output):
            expected = f"{len(node.output)}, the number of its results"
        if attribute.name == "batch_dims" and attribute.i < 0:
            expected = "at least 0"
        if expected:
            message = f"{attribute.name} of {node.op_type} {node.name!r} is out of range"
            raise ModelError(message, where=where, expected=expected, got=str(attribute.i))


def check_strictly(model: onnx.ModelProto, where: str) -> None:
    """Ask onnx's checker all that it knows: operators that the model's versions lack, and types and sizes that contradict each other.

    That is too much to ask of a model that compiles, since ONNX Runtime runs many that it refuses. Where the compiler fails, it says whose
    fault that is.

    Args:
        model: not modified; data outside it is not looked at.
        where: the model's file, for messages.

    Raises:
        ModelError: it refuses the model.
    """
    _check_texts(model, where)
    checked = _forgiven(model)
    outside = [tensor for tensor in checked.graph.initializer if tensor.data_location == onnx.TensorProto.EXTERNAL]
    for tensor in outside:
        checked.graph.initializer.remove(tensor)
        if all(value.name != tensor.name for value in checked.graph.input):
            kind = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            checked.graph.input.append(kind)
    try:
        with naming_short_operands():
            onnx.checker.check_model(checked, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError) as error:
        raise _invalid(error, where) from error


def _check_texts(message: Message, where: str) -> None:
    """Refuse texts that are not UTF-8, which protobuf gives as bytes."""
    for field, value in message.ListFields():
        if field.type not in (field.TYPE_STRING, field.TYPE_MESSAGE):
            continue
        for each in [value] if isinstance(value, (str, bytes, Message)) else value:
            if isinstance(each, Message):
                _check_texts(each, where)
            elif isinstance(each, bytes):
                raise ModelError(f"not a valid ONNX model: a {field.name} is not UTF-8", where=where, got=repr(each))


_FLOATS = frozenset({"tensor(bfloat16)", "tensor(double)", "tensor(float)", "tensor(float16)"})


def check_element_types(model: onnx.ModelProto, where: str) -> None:
    """Every operand has an element type that its operator takes, and every result the one that the model declares for it.

    As in ONNX Runtime, which takes sizes alone as hints; torch-mlir (20261001) dies on types that no version of an operator takes.

    Args:
        model: without large initializers; not modified.
        where: the model's file, for messages.

    Raises:
        ModelError: a node takes or computes another type.
    """
    declared = _element_types(model.graph)
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    for value in bare.graph.output:
        value.type.Clear()
    try:
        made_of = _element_types(inferred(bare, follows_data=False).graph)
    except onnx.shape_inference.InferenceError:  # whoever compiles the model says so
        return
    version = next((entry.version for entry in model.opset_import if not entry.domain), 1)
    for node in model.graph.node:
        _check_operands(node, version, made_of, where)
        for name in node.output:
            stated, made = declared.get(name), made_of.get(name)
            if stated and made and stated != made:
                raise ModelError(
                    f"{name!r}, a result of {node.op_type} {node.name!r}, is declared with another element type",
                    where=where,
                    expected=_type_name(made),
                    got=_type_name(stated),
                    hint="correct the declaration, or add a Cast",
                )


def _check_operands(node: onnx.NodeProto, version: int, made_of: Mapping[str, int], where: str) -> None:
    if node.domain or not onnx.defs.has(node.op_type, version):
        return
    operands = _operand_types(node.op_type, version)
    for index, name in enumerate(node.input):
        operand, types = operands[min(index, len(operands) - 1)]
        made = made_of.get(name)
        if made and f"tensor({_type_name(made)})" not in types:
            raise ModelError(
                f"{name!r}, {operand} of {node.op_type} {node.name!r}, has an element type that this operator does not take",
                where=where,
                expected=", ".join(sorted(types)),
                got=f"tensor({_type_name(made)})",
                hint="add a Cast",
            )


@cache
def _operand_types(operator: str, version: int) -> list[tuple[str, frozenset[str]]]:
    """Operands by name, with the types that they have in a version or in the newest; models have bf16 where no version has it."""
    newest = {operand.name: operand.types for operand in onnx.defs.get_schema(operator).inputs}
    operands = onnx.defs.get_schema(operator, version).inputs
    taken = {operand.name: frozenset(operand.types) | frozenset(newest.get(operand.name, ())) for operand in operands}
    return [(name, types | _FLOATS if types & _FLOATS else types) for name, types in taken.items()]


def _element_types(graph: onnx.GraphProto) -> dict[str, int]:
    values = {
        value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.value_info, *graph.output)
    }
    return values | {tensor.name: tensor.data_type for tensor in graph.initializer}


def _type_name(element_type: int) -> str:
    name: str = onnx.TensorProto.DataType.Name(element_type)
    return name.lower()


def _invalid(error: Exception, where: str) -> ModelError:
    reason = " ".join(str(error).partition("==> Context")[0].split()).rstrip(".")
    return ModelError(f"not a valid ONNX model: {reason}", where=where, hint="export the model again")


def _forgiven(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without what onnx's checker minds and ONNX Runtime does not."""
    checked = onnx.ModelProto()
    checked.CopyFrom(model)
    for node in all_nodes(checked.graph):
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _keep_computed_outputs(attribute.g)
    for value in (*checked.graph.input, *checked.graph.output):
        if value.type.WhichOneof("value") in (None, "tensor_type"):
            value.type.tensor_type.shape.SetInParent()
    for value in checked.graph.output:
        if value.type.HasField("tensor_type") and not value.type.tensor_type.elem_type:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return checked


def _keep_computed_outputs(branch: onnx.GraphProto) -> None:
    written = {name for node in branch.node for name in node.output}
    kept = [value for value in branch.output if value.name in written]
    del branch.output[:]
    branch.output.extend(kept)


def _is_unchecked(node: onnx.NodeProto, version: int) -> bool:
    """Whether the checker would refuse an operator that ONNX Runtime may run, or that is rejected by name later."""
    if node.domain:
        return (node.domain, node.op_type) in RESULTS
    return not onnx.defs.has(node.op_type, version) or onnx.defs.get_schema(node.op_type, version).deprecated


def check_constants(graph: onnx.GraphProto, external: Mapping[str, Array], where: str) -> None:
    """Every constant can be read as an array of the dims and type it states, without a file."""
    hint = "export the model again"
    initializers = len(graph.initializer)
    for index, tensor in enumerate((*graph.initializer, *attribute_tensors(graph))):
        if min(tensor.dims, default=0) < 0:
            raise ModelError(f"initializer {tensor.name!r} has dims {list(tensor.dims)}", where=where, hint=hint)
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            if index >= initializers or tensor.name not in external:
                hint = "load its external data first, or give the model as a file"
                raise ModelError(f"the data of initializer {tensor.name!r} is not loaded", where=where, hint=hint)
            continue
        try:
            numpy_helper.to_array(tensor)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"initializer {tensor.name!r} is broken: {error}", where=where, hint=hint) from error


def check_outputs(graph: onnx.GraphProto, where: str) -> None:
    """No output is listed twice, which onnx's checker takes."""
    names = [value.name for value in graph.output]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ModelError(f"output {twice[0]!r} is listed twice", where=where, expected="each output once")
