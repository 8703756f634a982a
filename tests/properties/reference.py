"""What a model gives: by ONNX Runtime's CPU provider, and where it lacks the operator or dtype by onnx's reference evaluator in float64."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from .call import Array, Case

_WIDER = {TensorProto.FLOAT16: TensorProto.FLOAT, TensorProto.BFLOAT16: TensorProto.FLOAT}
_WIDEST = dict.fromkeys((TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT), TensorProto.DOUBLE)
_TYPE_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype", "softmax_precision"})


def expected(case: Case) -> list[Array]:
    """Return the model's results; f16 and bf16 are computed in wider types, but for operators of bits.

    Raises:
        Exception: of the reference evaluator, where neither can run the model: the strategy has drawn what is none.
    """
    model, feeds = case.model, case.feeds
    if case.call.reference == "bits":
        return _by_evaluator(model, feeds)
    try:
        if case.call.reference == "onnx":
            return _by_evaluator(_converted(model, _WIDEST), _arrays(feeds, _WIDEST))
        return _by_onnxruntime(_converted(model, _WIDER), _arrays(feeds, _WIDER))
    except _ORT_ERRORS:
        return _by_evaluator(_converted(model, _WIDEST), _arrays(feeds, _WIDEST))


_ORT_ERRORS = tuple(
    getattr(ort.capi.onnxruntime_pybind11_state, name)
    for name in ("Fail", "InvalidArgument", "InvalidGraph", "NotImplemented", "RuntimeException")
)


def _by_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(result) for result in session.run(None, dict(feeds))]


def _by_evaluator(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    with np.errstate(all="ignore"):
        return [np.asarray(result) for result in ReferenceEvaluator(model, new_ops=_CORRECTED).run(None, dict(feeds))]


class Mean(OpRun):
    """The evaluator adds in place, which not all dims allow."""

    def _run(self, *operands: Array) -> tuple[Array]:
        return (np.asarray(sum(operands) / len(operands), operands[0].dtype),)


class Softsign(OpRun):
    """The evaluator takes no tensor of rank 0."""

    def _run(self, x: Array) -> tuple[Array]:
        return (np.asarray(x / (1 + np.abs(x))),)


class Erf(OpRun):
    """The evaluator rounds to f32."""

    def _run(self, x: Array) -> tuple[Array]:
        return (np.vectorize(math.erf, otypes=[x.dtype])(x),)


class OneHot(OpRun):
    """The evaluator calculates with the values, which may be booleans."""

    def _run(self, indices: Array, depth: Array, values: Array, axis: int = -1) -> tuple[Array]:
        count = int(np.asarray(depth).item())
        places = np.where(indices < 0, indices + count, indices)
        hot = np.expand_dims(places, axis) == np.moveaxis(np.arange(count).reshape(-1, *[1] * indices.ndim), 0, axis)
        return (np.where(hot, values[1], values[0]),)


_CORRECTED = [Mean, Softsign, Erf, OneHot]


def _arrays(feeds: Mapping[str, Array], wider: Mapping[int, int]) -> dict[str, Array]:
    return {name: _wide(array, wider) for name, array in feeds.items()}


def _wide(array: Array, wider: Mapping[int, int]) -> Array:
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return array.astype(helper.tensor_dtype_to_np_dtype(wider[kind])) if kind in wider else array


def _converted(model: onnx.ModelProto, wider: Mapping[int, int]) -> onnx.ModelProto:
    """The model with tensors and types of attributes in wider types."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for value in made.graph.input:
        kind = value.type.tensor_type
        kind.elem_type = wider.get(kind.elem_type, kind.elem_type)
    for tensor in made.graph.initializer:
        _widen(tensor, wider)
    for node in made.graph.node:
        for attribute in node.attribute:
            if attribute.name in _TYPE_ATTRIBUTES:
                attribute.i = wider.get(attribute.i, attribute.i)
            if attribute.type == onnx.AttributeProto.TENSOR:
                _widen(attribute.t, wider)
    return made


def _widen(tensor: onnx.TensorProto, wider: Mapping[int, int]) -> None:
    if tensor.data_type in wider:
        tensor.CopyFrom(numpy_helper.from_array(_wide(numpy_helper.to_array(tensor), wider), tensor.name))
