"""One ONNX operator by onnx's reference evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from runtime_programs import Array


def reference(operator: str, inputs: Sequence[Array | None], outputs: int = 1, **attributes: Any) -> list[Array]:
    """Return an operator's outputs; an input of None is left out."""
    names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in zip(names, inputs, strict=True)
        if value is not None
    ]
    graph = helper.make_graph(
        [helper.make_node(operator, names, results, **attributes)],
        "reference",
        infos,
        [helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in results],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])
    feeds = {name: value for name, value in zip(names, inputs, strict=True) if value is not None}
    return [result for result in ReferenceEvaluator(model).run(None, feeds) if not isinstance(result, list)]
