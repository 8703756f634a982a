"""Models of one node, run by ONNX Runtime as they are and decomposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

from hipdnn_mlir.frontend.decompositions.decompose import decompose

CONTRIB = "com.microsoft"
Arrays = Mapping[str, np.ndarray]
_TOLERANCES = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-9}
"""Absolute and relative: both sides round in their own order."""


def node_model(
    op: str,
    inputs: Arrays,
    outputs: Sequence[str] = ("y",),
    *,
    operands: Sequence[str] | None = None,
    domain: str = CONTRIB,
    constants: Sequence[str] = (),
    opset: int = 21,
    is_open: bool = False,
    **attributes: Any,
) -> onnx.ModelProto:
    """Return a model of one node.

    Args:
        op: Operator.
        inputs: Arrays of the operands.
        outputs: Names of the results, "" for those left out.
        operands: Names in the node's order with "" for those left out, where this is not the order of the inputs.
        domain: Of the operator.
        constants: Inputs that are initializers.
        opset: Of the default domain.
        is_open: Whether the first two dims of inputs are open, in the model only.
        attributes: Of the node.
    """
    node = helper.make_node(op, [*(operands or inputs)], [*outputs], name=f"the_{op}", domain=domain, **attributes)
    given = [_value(name, array, is_open) for name, array in inputs.items() if name not in constants]
    results = [onnx.ValueInfoProto(name=name) for name in outputs if name]
    weights = [onnx.numpy_helper.from_array(np.asarray(inputs[name]), name) for name in constants]
    graph = helper.make_graph([node], "node", given, results, weights)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _value(name: str, array: np.ndarray, is_open: bool) -> onnx.ValueInfoProto:
    dims: list[Any] = [*array.shape]
    if is_open:
        dims[:2] = [f"{name}_{axis}" for axis in range(len(dims[:2]))]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), dims)


def run(model: onnx.ModelProto, feeds: Arrays) -> list[np.ndarray]:
    """Return the model's results on ONNX Runtime's CPU provider."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = {port.name for port in session.get_inputs()}
    return session.run(None, {name: array for name, array in feeds.items() if name in names})


def decomposed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model written out, checked: of basic operators only."""
    result, rejects, *_ = decompose(model)
    assert not rejects, rejects
    assert {node.domain for node in result.graph.node} == {""}
    result = onnx.shape_inference.infer_shapes(result, strict_mode=True)
    onnx.checker.check_model(result)
    for node in result.graph.node:
        node.name = ""  # all have the name of the node they stand for, which ONNX Runtime refuses
    return result


def assert_decomposes(
    op: str, inputs: Arrays, *args: Any, tolerance: float | None = None, **kwargs: Any
) -> onnx.ModelProto:
    """Assert that ONNX Runtime gives the same results for the node and for what it is written out as; return the latter."""
    model = node_model(op, inputs, *args, **kwargs)
    written = decomposed(model)
    for got, want in zip(run(written, inputs), run(model, inputs), strict=True):
        bound = _TOLERANCES.get(want.dtype.name, 0.0) if tolerance is None else tolerance
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=bound, atol=bound)
    return written
