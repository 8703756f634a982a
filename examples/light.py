"""The onnx package's small image classifiers: real networks whose large weights are all constants of one value."""

from __future__ import annotations

from math import prod, sqrt
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
from onnx import numpy_helper

DIRECTORY = Path(onnx.backend.test.__file__).parent / "data" / "light"


def paths() -> list[Path]:
    """Return the files of all light models of the installed onnx package."""
    return sorted(DIRECTORY.glob("light_*.onnx"))


def with_random_weights(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Return a model with random weights that keep the scale of activations.

    With the constant weights of the package every class scores the same whatever the image is: a comparison could
    hardly fail.

    Args:
        model: A light model; its weights are results of ``ConstantOfShape`` nodes, or small initializers.
        seed: Seed of the weights.
    """
    rng = np.random.default_rng(seed)
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    dims_of = {name: value.shape for name, value in values.items() if value.dtype == np.float32}
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape":
            dims_of[node.output[0]] = tuple(int(dim) for dim in values[node.input[0]])
    scales, damped = _scales(model.graph), _last_scales_of_residual_branches(model.graph)

    result = onnx.ModelProto()
    result.CopyFrom(model)
    result.ir_version = max(model.ir_version, 4)  # the first in which an initializer need not be a graph input
    del result.graph.node[:], result.graph.initializer[:], result.graph.input[:]
    result.graph.input.extend(value for value in model.graph.input if value.name not in values)
    result.graph.node.extend(node for node in model.graph.node if node.op_type != "ConstantOfShape")
    result.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name not in dims_of)
    for name, dims in dims_of.items():
        if name in damped:
            weight = rng.uniform(0.2, 0.4, dims)
        elif name in scales:
            weight = rng.uniform(0.7, 1.1, dims)
        elif len(dims) > 1:
            weight = rng.standard_normal(dims, np.float32) * np.float32(sqrt(2 / prod(dims[1:])))
        else:
            weight = rng.standard_normal(dims) * 0.1
        result.graph.initializer.append(numpy_helper.from_array(weight.astype(np.float32), name))
    return result


def _scales(graph: onnx.GraphProto) -> set[str]:
    """Return the names of weights that multiply or divide: scales and variances of batch norms, factors of ``Mul``."""
    source = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Unsqueeze"}
    found = set()
    for node in graph.node:
        if node.op_type == "BatchNormalization":
            found |= {node.input[1], node.input[4]}
        elif node.op_type == "Mul":
            found |= {source.get(name, name) for name in node.input}
    return found


def _last_scales_of_residual_branches(graph: onnx.GraphProto) -> set[str]:
    """Return the scales of batch norms added to a shortcut: kept small, or every block would double what flows by."""
    scale_of = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "BatchNormalization"}
    found = set()
    for node in graph.node:
        branches = [scale_of[name] for name in node.input if name in scale_of]
        if node.op_type in ("Add", "Sum") and len(branches) == 1:
            found |= set(branches)
    return found
