"""Folds what an ONNX graph computes from constants and static shapes, before it is imported."""

import logging
from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from .onnx_types import BY_ONNX
from .ops.evaluate import Array
from .ops.strides import Dims

logger = logging.getLogger(__name__)

MAX_FOLDED_ELEMENTS = 1 << 16
"""Results larger than this stay computed: they would bloat the program more than they save."""
_MAX_ROUNDS = 8
_RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"}
)


def fold_constants(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Replace nodes whose results are known by initializers, and infer shapes, until nothing changes.

    Shape and Size of static tensors are known, and tensors without elements; so is every node on known inputs only, evaluated by onnx's
    reference implementation. An If with a known condition becomes the branch it takes.

    Args:
        model: without large initializers; not modified.

    Returns:
        A model with shapes inferred, and results too large for an initializer, which are inputs of it.
    """
    large: dict[str, Array] = {}
    for _ in range(_MAX_ROUNDS):
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        folder = _Folder(model)
        if not folder.run():
            break
        model = folder.rebuilt()
        large |= folder.large
    return model, large


class _Folder:
    """One pass over a graph's nodes in order."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        graph = model.graph
        self._dims = dict(_static_dims([*graph.input, *graph.output, *graph.value_info]))
        values = [*graph.input, *graph.output, *graph.value_info]
        self._empty = dict(_empty_arrays(values))
        self._known: dict[str, Array] = self._empty | {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self._folded: dict[str, Array] = {}
        self._kept: list[onnx.NodeProto] = []
        self._inlined = False
        self.large: dict[str, Array] = {}

    def run(self) -> bool:
        """Fold what can be; returns whether anything was."""
        for node in self._model.graph.node:
            branch = self._branch(node)
            if branch is not None:
                self._inline(node, branch)
                continue
            results = self._results(node)
            if results is None:
                self._kept.append(node)
                continue
            for name, array in zip(node.output, results, strict=False):
                if name:
                    self._known[name] = self._folded[name] = array
        return bool(self._folded) or self._inlined

    def _branch(self, node: onnx.NodeProto) -> onnx.GraphProto | None:
        """The branch that an If with a known condition takes."""
        if node.op_type != "If" or node.input[0] not in self._known:
            return None
        taken = "then_branch" if bool(self._known[node.input[0]].any()) else "else_branch"
        branch: onnx.GraphProto = next(attribute.g for attribute in node.attribute if attribute.name == taken)
        return branch

    def _inline(self, node: onnx.NodeProto, branch: onnx.GraphProto) -> None:
        """Put a branch's nodes in the place of the If; ONNX keeps names unique across subgraphs."""
        self._inlined = True
        self._model.graph.initializer.extend(branch.initializer)
        self._kept.extend(branch.node)
        for value, name in zip(branch.output, node.output, strict=True):
            self._kept.append(onnx.helper.make_node("Identity", [value.name], [name], name=f"{node.name}.{name}"))

    def rebuilt(self) -> onnx.ModelProto:
        """The model with folded results as initializers."""
        result = onnx.ModelProto()
        result.CopyFrom(self._model)
        graph = result.graph
        del graph.node[:]
        del graph.value_info[:]
        outputs = {value.name for value in graph.output}
        for name, array in self._folded.items():
            stored = f"{name}.constant" if name in outputs else name
            if array.size > MAX_FOLDED_ELEMENTS:
                self.large[stored] = array
                graph.input.append(
                    onnx.helper.make_tensor_value_info(
                        stored, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
                    )
                )
            else:
                graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array), stored))
            if name in outputs:
                graph.node.append(onnx.helper.make_node("Identity", [stored], [name], name=name))
        graph.node.extend(self._kept)
        used = (
            {name for node in graph.node for name in node.input}
            | {name for node in graph.node for name in _captured(node)}
            | outputs
        )
        kept = [tensor for tensor in graph.initializer if tensor.name in used]
        del graph.initializer[:]
        graph.initializer.extend(kept)
        return result

    def _results(self, node: onnx.NodeProto) -> list[Array] | None:
        if (
            node.domain not in ("", "ai.onnx")
            or node.op_type in _RANDOM
            or any(a.g.node or a.graphs for a in node.attribute)
        ):
            return None
        if node.op_type == "Identity" and node.output[0] in {value.name for value in self._model.graph.output}:
            return None
        if node.op_type in ("Shape", "Size"):
            dims = self._dims.get(node.input[0])
            return None if dims is None else [_shape(node, dims)]
        if node.output and all(name in self._empty for name in node.output if name):
            return [self._empty.get(name, np.empty(0)) for name in node.output]
        if not all(name in self._known for name in node.input if name):
            return None
        return self._fill(node) if node.op_type == "ConstantOfShape" else self._evaluate(node)

    def _fill(self, node: onnx.NodeProto) -> list[Array]:
        """A constant of any size: one number in memory."""
        value = next(
            (numpy_helper.to_array(a.t).reshape(()) for a in node.attribute if a.name == "value"),
            np.zeros((), np.float32),
        )
        return [np.broadcast_to(value, tuple(self._known[node.input[0]].tolist()))]

    def _evaluate(self, node: onnx.NodeProto) -> list[Array] | None:
        feeds = {name: self._known[name] for name in node.input if name}
        if sum(array.size for array in feeds.values()) > MAX_FOLDED_ELEMENTS:
            return None
        inputs = [
            onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in feeds.items()
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "constant", inputs, outputs)
        single = onnx.helper.make_model(
            graph, opset_imports=list(self._model.opset_import), ir_version=self._model.ir_version
        )
        try:
            results = ReferenceEvaluator(single).run(None, feeds)
        except Exception as error:  # noqa: BLE001 - onnx's evaluator raises anything; what it cannot fold is left in the graph
            logger.debug("%s %s is not folded: %s", node.op_type, node.name, error)
            return None
        if not all(isinstance(r, (np.ndarray, np.generic)) and r.size <= MAX_FOLDED_ELEMENTS for r in results):
            return None
        named = iter(np.asarray(result) for result in results)
        return [next(named) if name else np.empty(0) for name in node.output]


def _captured(node: onnx.NodeProto) -> Iterable[str]:
    """Names that subgraphs of a node read."""
    for attribute in node.attribute:
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            for inner in graph.node:
                yield from inner.input
                yield from _captured(inner)
            yield from (value.name for value in graph.output)


def _static_dims(values: Iterable[Any]) -> Iterable[tuple[str, Dims]]:
    for value in values:
        kind = value.type.tensor_type
        if kind.HasField("shape") and all(d.HasField("dim_value") for d in kind.shape.dim):
            yield value.name, tuple(d.dim_value for d in kind.shape.dim)


def _empty_arrays(values: Iterable[Any]) -> Iterable[tuple[str, Array]]:
    """The values that are known because they have no elements."""
    kinds = {value.name: value.type.tensor_type.elem_type for value in values}
    for name, dims in _static_dims(values):
        if 0 in dims and min(dims) >= 0 and kinds[name] in BY_ONNX:
            yield name, np.empty(dims, onnx.helper.tensor_dtype_to_np_dtype(kinds[name]))


def _shape(node: onnx.NodeProto, dims: Dims) -> Array:
    if node.op_type == "Size":
        return np.asarray(np.prod(dims, dtype=np.int64))
    window = {attribute.name: attribute.i for attribute in node.attribute}
    return np.asarray(dims[slice(window.get("start"), window.get("end"))], np.int64)
