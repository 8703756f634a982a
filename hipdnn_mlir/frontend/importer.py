"""ONNX model -> module in the torch dialect, large initializers outside the IR."""

import math

import onnx
from torch_mlir import ir
from torch_mlir.extras import onnx_importer

from hipdnn_mlir_runtime.dtypes import U8
from hipdnn_mlir_runtime.errors import NO_ROW, ModelError, Reject, UnsupportedError

from ..ir.attention_masks import CAUSAL_MASK, is_causal_mask
from ..ir.constants import CONSTANT
from ..ir.imported import Imported, TensorInfo, Weights
from ..ops.evaluate import Array
from ..ops.table import own_operators
from .coded_types import refused_codes, write_codes
from .conversions import wrong_conversions
from .onnx_types import BY_ONNX, CODED_BY_ONNX
from .operands import attach_known_operands, refused_axes
from .own_operators import unknown_operators
from .prepare import Slim
from .shape_inference import unknown_results

MAX_BYTES = 1 << 48
MAX_ELEMENTS = 1 << 40
"""Of a tensor in a program: the runtime's `kElementsLimit`."""


def import_model(slim: Slim, context: ir.Context) -> Imported:
    """Bring a model into MLIR, its operators as `torch.operator "onnx.X"`.

    Args:
        slim: from `slim_models`.
        context: from dialect.make_context().

    Raises:
        ModelError: inputs of unknown dims, sizes that contradict each other, dtypes without a row, tensors that no program may have.
        UnsupportedError: results of unknown shape, operators of unknown domains.
    """
    model, weights, where = slim.model, slim.weights, slim.where
    inputs = _inputs(model, weights, where)
    for value in model.graph.output:
        _check_tensor(value, where)
    left = (
        unknown_operators(model)
        or _deprecated(model)
        or unknown_results(model, where)
        or refused_axes(model)
        or list(slim.refused)
        or refused_codes(model)
    )
    if left:
        raise UnsupportedError(left)
    outputs = [_info(value, where, hint="run onnx.checker on the model") for value in model.graph.output]
    for value in (*model.graph.input, *model.graph.value_info, *model.graph.output):
        _check_elements(value, where)
    write_codes(model, weights)
    attach_known_operands(model)
    module = _to_mlir(model, context, where)
    _annotate(module, model, weights)
    return Imported(module, weights, inputs, outputs, model.graph.name or "model")


def left_aside(slim: Slim) -> list[str]:
    """Operators that torch-mlir's conversion is kept from: it has them wrong, or the op table has rows of their own."""
    return sorted({*wrong_conversions(slim.model), *own_operators()})


def _deprecated(model: onnx.ModelProto) -> list[Reject]:
    """Nodes of operators that the model's version of ONNX has no longer; torch-mlir's conversion (20261001) dies on some."""
    version = next(entry.version for entry in model.opset_import if not entry.domain)
    return [
        Reject(node.op_type, NO_ROW, f"opset {version} has it no longer", node.name)
        for node in model.graph.node
        if not node.domain
        and onnx.defs.has(node.op_type, version)
        and onnx.defs.get_schema(node.op_type, version).deprecated
    ]


def _inputs(model: onnx.ModelProto, weights: Weights, where: str) -> list[TensorInfo]:
    initializers = {tensor.name for tensor in model.graph.initializer}
    given = [value for value in model.graph.input if value.name not in weights and value.name not in initializers]
    return [_info(value, where, hint=f"make the inputs static: --shape {value.name}=...") for value in given]


def _check_tensor(value: onnx.ValueInfoProto, where: str) -> None:
    if not value.type.HasField("tensor_type"):
        raise ModelError(f"{value.name!r} is not a tensor", where=where, expected="tensors as inputs and outputs")


def _check_elements(value: onnx.ValueInfoProto, where: str) -> None:
    """Refuse what the runtime would refuse to load."""
    dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    if math.prod(dims) > MAX_ELEMENTS:
        shape = "x".join(map(str, dims))
        raise ModelError(f"{value.name!r} of shape {shape} is too large", where=where, expected="at most 2^40 elements")


def _info(value: onnx.ValueInfoProto, where: str, hint: str) -> TensorInfo:
    _check_tensor(value, where)
    kind = value.type.tensor_type
    coded = CODED_BY_ONNX.get(kind.elem_type)
    dtype = U8 if coded else BY_ONNX.get(kind.elem_type)
    if dtype is None:
        name = onnx.TensorProto.DataType.Name(kind.elem_type)
        raise ModelError(
            f"{value.name!r} has element type {name}",
            where=where,
            expected=f"one of {', '.join(d.name for d in (*BY_ONNX.values(), *CODED_BY_ONNX.values()))}",
        )
    dims = tuple(d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim)
    if -1 in dims or not kind.HasField("shape"):
        shown = "x".join(d.dim_param or str(d.dim_value or "?") for d in kind.shape.dim) or "unknown"
        raise ModelError(
            f"{value.name!r} has dynamic dimensions: {shown}", where=where, expected="static sizes", hint=hint
        )
    info = TensorInfo(value.name, dtype, dims, coded.name if coded else "")
    if math.prod(dims) * info.dtype.bytes >= MAX_BYTES:
        raise ModelError(
            f"{value.name!r} of shape {'x'.join(map(str, dims))} is too large",
            where=where,
            expected="less than 2^48 bytes",
        )
    return info


def _to_mlir(model: onnx.ModelProto, context: ir.Context, where: str) -> ir.Module:
    info = onnx_importer.ModelInfo(model, config=onnx_importer.Config())
    module = info.create_module(context=context)
    try:
        onnx_importer.NodeImporter.define_function(info.main_graph, module.operation).import_all()
    except (onnx_importer.OnnxImportError, KeyError, ValueError) as error:
        raise ModelError(
            f"cannot be imported: {str(error).splitlines()[0]}", where=where, hint="run onnx.checker on the model"
        ) from error
    return module


def _annotate(module: ir.Module, model: onnx.ModelProto, weights: Weights) -> None:
    """Name the function @main, mark its constant arguments and, among them, causal masks."""
    function = module.body.operations[0].operation
    initializers = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in initializers]
    with module.context:
        function.attributes["sym_name"] = ir.StringAttr.get("main")
        marks = [ir.DictAttr.get(_marks(name, weights[name]) if name in weights else {}) for name in names]
        if marks:
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(marks)


def _marks(name: str, array: Array) -> dict[str, ir.Attribute]:
    causal = {CAUSAL_MASK: ir.UnitAttr.get()} if is_causal_mask(array) else {}
    return {CONSTANT: ir.StringAttr.get(name), **causal}
