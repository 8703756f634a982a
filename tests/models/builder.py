"""A small writer of ONNX graphs: nodes in order, named weights, one random generator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[np.generic]


class GraphBuilder:
    """Collects nodes and initializers of one graph.

    Args:
        name: The graph's name.
        opset: Version of the default operator set.
        seed: Seed of every random weight.
    """

    def __init__(self, name: str, *, opset: int = 17, seed: int = 0) -> None:
        self.name = name
        self.opset = opset
        self.rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._counts: dict[str, int] = {}

    def input(self, name: str, dims: Sequence[int | str], dtype: int = TensorProto.FLOAT) -> str:
        """Declare a graph input and return its name."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, list(dims)))
        return name

    def op(self, op_type: str, *inputs: str, **attributes: object) -> str:
        """Append a node with one result, named after its type and count; return the result's name."""
        name = self._fresh(op_type)
        self._nodes.append(helper.make_node(op_type, list(inputs), [name], name=name, **attributes))
        return name

    def split(self, x: str, sizes: Sequence[int], axis: int) -> list[str]:
        """Append a Split into parts of the given sizes and return their names."""
        names = [self._fresh("Split") for _ in sizes]
        self._nodes.append(
            helper.make_node("Split", [x, self.constant(sizes, np.int64)], names, name=names[0], axis=axis)
        )
        return names

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike, name: str = "constant") -> str:
        """Add an initializer and return its name."""
        name = self._fresh(name)
        self._weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def normal(self, dims: Sequence[int], std: float, mean: float = 0.0, name: str = "weight") -> str:
        """Add a normally distributed f32 weight."""
        return self.constant(
            self.rng.standard_normal(dims, np.float32) * np.float32(std) + np.float32(mean), np.float32, name
        )

    def uniform(self, dims: Sequence[int], low: float, high: float, name: str = "weight") -> str:
        """Add a uniformly distributed f32 weight."""
        return self.constant(self.rng.uniform(low, high, dims), np.float32, name)

    def model(self, outputs: dict[str, Sequence[int | str]], *, dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
        """Return the finished, checked model; ``outputs`` maps result names to their dims."""
        graph = helper.make_graph(
            self._nodes,
            self.name,
            self._inputs,
            [helper.make_tensor_value_info(name, dtype, list(dims)) for name, dims in outputs.items()],
            self._weights,
        )
        opsets = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="test-models")
        onnx.checker.check_model(model)
        return model

    def _fresh(self, stem: str) -> str:
        index = self._counts.get(stem, 0)
        self._counts[stem] = index + 1
        return f"{stem}_{index}"
