"""Models of a few nodes for tests of sessions, with weights from a seed."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import untaken

Dims = list[int | str]


def _model(nodes: list[onnx.NodeProto], dims: Dims, weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    graph = make_graph(
        nodes,
        "small",
        [make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = make_model(graph, opset_imports=[make_opsetid("", 17), untaken.OPSET], ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def convolution(dims: Dims | None = None) -> onnx.ModelProto:
    """Return Conv 3x3, 3 to 8 channels, and Relu on `x` of shape n c h w: one program."""
    rng = np.random.default_rng(1)
    weights = {
        "w": rng.standard_normal((8, 3, 3, 3)).astype(np.float32),
        "b": rng.standard_normal(8).astype(np.float32),
    }
    nodes = [
        make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        make_node("Relu", ["c"], ["y"], name="relu"),
    ]
    return _model(nodes, dims or [1, 3, 8, 8], weights)


def alternating(count: int = 4) -> onnx.ModelProto:
    """Return `count` pairs of a Relu, which the provider takes, and one that it does not take: one program each under `maximal`."""
    nodes, last = [], "x"
    for i in range(count):
        result = "y" if i == count - 1 else f"h{i}"
        nodes += [
            make_node("Relu", [last], [f"r{i}"], name=f"relu{i}"),
            untaken.node(f"r{i}", result, f"untaken{i}"),
        ]
        last = result
    return _model(nodes, [4, 16], {})


def many_weights(count: int = 40) -> onnx.ModelProto:
    """Return `count` additions of a weight each."""
    rng = np.random.default_rng(2)
    weights = {f"w{i}": rng.standard_normal((4, 100)).astype(np.float32) for i in range(count)}
    values = ["x", *(f"v{i}" for i in range(count - 1)), "y"]
    nodes = [make_node("Add", [values[i], f"w{i}"], [values[i + 1]], name=f"add{i}") for i in range(count)]
    return _model(nodes, [4, 100], weights)


def without_one_form() -> onnx.ModelProto:
    """Return Relu and a Reshape to 4 x 6 on `x` of shape batch 12: it has a meaning for one batch only."""
    return onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 17]>
        g (float[batch, 12] x) => (float[4, 6] y) <int64[2] s = {4, 6}> { r = Relu(x) y = Reshape(r, s) }""")


def inputs_for(model: onnx.ModelProto, seed: int = 0, **symbols: int) -> dict[str, np.ndarray]:
    """Return random inputs; `symbols` gives the sizes of named dims."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for value in model.graph.input:
        dims = [dim.dim_value or symbols[dim.dim_param] for dim in value.type.tensor_type.shape.dim]
        arrays[value.name] = rng.standard_normal(dims).astype(np.float32)
    return arrays
