"""Folds what an ONNX graph computes from constants and static shapes, before it is imported."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from hipdnn_mlir_runtime.errors import DynamicDimensionError
from hipdnn_mlir_runtime.limits import MAX_SIZE

from ..dynamic.facts import Fact, varies
from ..ops.evaluate import Array
from ..ops.strides import Dims
from .constant_branches import computes_nothing
from .onnx_types import BY_ONNX
from .shape_inference import SizesContradictError, infer_shapes, node_results, static_dims
from .sizes.cuts import Sampled, cut_facts, is_whole, untold
from .sizes.facts import facts_of, orders
from .sizes.windows import WINDOWED
from .subgraphs import subgraphs

logger = logging.getLogger(__name__)

MAX_FOLDED_ELEMENTS = 1 << 16
"""Results larger than this stay computed: they would bloat the program more than they save."""
MAX_FILLED_ELEMENTS = 1 << 28
"""The same of one number at every place, which takes no memory before the program is written."""
RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"}
)
_MISEVALUATED = frozenset(
    {"AveragePool", "ConvTranspose", "Erf", "GatherElements", "GlobalMaxPool", "GridSample", "LRN", "MaxPool"}
)
"""Operators of which onnx's reference implementation (1.23) is wrong: windows beyond the end, bias of groups, f64, indices beyond a
dim, which it counts down one dim at a time, dims, cubic samples, other channels, windows beyond the start."""


_SHRINKING = WINDOWED | {"Pad", "Resize"}
"""Operators that may leave nothing of what has elements, beside those of which `cut_facts` knows what they leave."""
MAX_SIZES = 1024
"""Elements of a result that differs with the dynamic dimensions of a model and is known nevertheless: shapes, and parts of them."""
_MOST_DIMS = 8
"""The same of floats, which are one dim or a few: more of them are positions, and a run computes these."""


@dataclass(frozen=True)
class Folded:
    """A model with constants folded.

    Attributes:
        model: with shapes inferred.
        large: results too large for an initializer, which are inputs of the model.
        facts: what is assumed of dynamic dimensions, the same for the model at all sizes.
    """

    model: onnx.ModelProto
    large: dict[str, Array]
    facts: tuple[Fact, ...] = ()


def fold_constants(models: Sequence[onnx.ModelProto]) -> list[Folded]:
    """Replace nodes whose results are known by initializers, and infer shapes, until nothing changes.

    Shape and Size of static tensors are known, and tensors without elements; so is every node on known inputs only, evaluated by onnx's
    reference implementation. An If with a known condition becomes the branch it takes.

    Args:
        models: one model, or the same at several sizes of its inputs; without large initializers; not modified. Models at several sizes are
            folded alike: a result has to be the same for all of them, but integers, which may be computed from sizes.

    Raises:
        onnx.shape_inference.InferenceError: shapes do not fit.
        DynamicDimensionError: operators decomposed differently at different sizes.
    """
    large: list[dict[str, Array]] = [{} for _ in models]
    facts: list[Fact] = []
    while True:
        models = [infer_shapes(model) for model in models]
        folder = _Folder(models)
        if not folder.run():
            facts += folder.cuts()
            break
        models = folder.rebuilt()
        facts += folder.facts
        for found, more in zip(large, folder.large, strict=True):
            found.update(more)
    return [Folded(model, arrays, tuple(facts)) for model, arrays in zip(models, large, strict=True)]


class _Folder:
    """One pass over a graph's nodes in order. What is known of a value is one array per model."""

    def __init__(self, models: Sequence[onnx.ModelProto]) -> None:
        self._models = models
        values = [[*m.graph.input, *m.graph.output, *m.graph.value_info] for m in models]
        self._dims = [dict(_static_dims(found)) for found in values]
        self._types = [
            {value.name: value.type for value in found}
            | {t.name: onnx.helper.make_tensor_type_proto(t.data_type, t.dims) for t in m.graph.initializer}
            for m, found in zip(models, values, strict=True)
        ]
        empty = [dict(_empty_arrays(found)) for found in values]
        self._empty = {name: [arrays[name] for arrays in empty] for name in empty[0] if all(name in e for e in empty)}
        initializers = [{t.name: numpy_helper.to_array(t) for t in m.graph.initializer} for m in models]
        if any(arrays.keys() != initializers[0].keys() for arrays in initializers):
            raise DynamicDimensionError(
                "operators of the model decompose differently at different sizes of a dynamic dimension"
            )
        self._known = self._empty | {
            name: _shared([arrays[name] for arrays in initializers]) for name in initializers[0]
        }
        self._at = Sampled(self._dims, self._known.get)
        # What orders sizes and is a result, or chooses between constants, is left to each run: a constant would hold for some sizes only.
        self._results_and_choices = {value.name for value in models[0].graph.output}
        self._results_and_choices |= {node.input[0] for node in models[0].graph.node if computes_nothing(node)}
        self._folded: dict[str, list[Array]] = {}
        self._kept: list[onnx.NodeProto] = []
        self._inlined = False
        self.facts: list[Fact] = []
        self.large: list[dict[str, Array]] = [{} for _ in models]

    def run(self) -> bool:
        """Fold what can be; returns whether anything was."""
        for node in self._models[0].graph.node:
            branch = self._branch(node)
            if branch is not None:
                self._inline(node, branch)
                continue
            results = self._results(node)
            if results is None:
                self._kept.append(node)
                for index in range(len(self._models)):
                    self._learn(node, index)
                continue
            for name, arrays in zip(node.output, results, strict=False):
                if name:
                    self._known[name] = self._folded[name] = arrays
                    self._note(name, arrays)
        return bool(self._folded) or self._inlined

    def _learn(self, node: onnx.NodeProto, index: int) -> None:
        """Note what folded operands tell of a node's results: the nodes behind it then need no further pass."""
        dims, types = self._dims[index], self._types[index]
        if all(name in dims for name in node.output if name):
            return
        data = {
            name: numpy_helper.from_array(np.asarray(self._known[name][index], order="C"), name)
            for name in node.input
            if name in self._known and self._known[name][index].size <= MAX_SIZES
        }
        try:
            found = node_results(node, types, data, self._models[index].opset_import)
        except SizesContradictError:  # said where the whole model has been seen
            return
        types.update(found)
        made = [onnx.ValueInfoProto(name=name, type=kind) for name, kind in found.items()]
        dims.update(_static_dims(made))

    def _is_small(self, node: onnx.NodeProto, feeds: Mapping[str, Array], index: int) -> bool:
        """Whether evaluating a node takes little memory: by the sizes of its results, or by the numbers that may become such sizes."""
        if sum(array.size for array in feeds.values()) > MAX_FOLDED_ELEMENTS:
            return False
        self._learn(node, index)
        results = [self._dims[index].get(name) for name in node.output if name]
        if None not in results:
            return all(math.prod(dims) <= MAX_FOLDED_ELEMENTS for dims in results if dims)
        whole = [array for array in feeds.values() if array.dtype.kind in "iu"]
        return all(array.max(initial=0) <= MAX_FOLDED_ELEMENTS for array in whole)

    def _note(self, name: str, arrays: Sequence[Array]) -> None:
        for types, array in zip(self._types, arrays, strict=True):
            kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            types[name] = onnx.helper.make_tensor_type_proto(kind, array.shape)

    def _branch(self, node: onnx.NodeProto) -> onnx.GraphProto | None:
        """The branch that an If with a known condition takes."""
        if node.op_type != "If" or node.input[0] not in self._known:
            return None
        conditions = {bool(array.any()) for array in self._known[node.input[0]]}
        if len(conditions) > 1:
            return None
        taken = "then_branch" if conditions.pop() else "else_branch"
        branch: onnx.GraphProto = next(attribute.g for attribute in node.attribute if attribute.name == taken)
        return branch

    def _inline(self, node: onnx.NodeProto, branch: onnx.GraphProto) -> None:
        """Put a branch's nodes in the place of the If; ONNX keeps names unique across subgraphs."""
        self._inlined = True
        for model in self._models:
            model.graph.initializer.extend(branch.initializer)
        self._kept.extend(branch.node)
        for value, name in zip(branch.output, node.output, strict=True):
            self._kept.append(onnx.helper.make_node("Identity", [value.name], [name], name=f"{node.name}.{name}"))

    def cuts(self) -> list[Fact]:
        """What is assumed of the sizes that the nodes take or add parts of."""
        if len(self._models) == 1:
            return []
        return [fact for node in self._models[0].graph.node for fact in cut_facts(node, self._at)]

    def rebuilt(self) -> list[onnx.ModelProto]:
        """The models with folded results as initializers."""
        return [self._rebuilt(index) for index in range(len(self._models))]

    def _rebuilt(self, index: int) -> onnx.ModelProto:
        result = onnx.ModelProto()
        result.CopyFrom(self._models[index])
        graph = result.graph
        del graph.node[:]
        del graph.value_info[:]
        outputs = {value.name for value in graph.output}
        for name, arrays in self._folded.items():
            array, stored = arrays[index], f"{name}.constant" if name in outputs else name
            if array.size > MAX_FOLDED_ELEMENTS:
                self.large[index][stored] = array
                graph.input.append(
                    onnx.helper.make_tensor_value_info(
                        stored, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
                    )
                )
            else:
                graph.initializer.append(numpy_helper.from_array(np.asarray(array, order="C"), stored))
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

    def _results(self, node: onnx.NodeProto) -> list[list[Array]] | None:
        """Per output one array per model, or None where the node stays."""
        if node.domain or node.op_type in RANDOM | _MISEVALUATED or any(a.g.node or a.graphs for a in node.attribute):
            return None
        if node.op_type == "Identity" and node.output[0] in {value.name for value in self._models[0].graph.output}:
            return None
        per_model: list[list[Array]] = []
        for index in range(len(self._models)):
            results = per_model[0] if index and self._is_alike(node, index) else self._evaluated(node, index)
            if results is None:
                return None
            per_model.append(results)
        is_made_empty = node.output[0] in self._empty and any(name not in self._empty for name in node.input[:1])
        if len(self._models) > 1 and is_made_empty:
            self._check_empty(node)
        per_output = [_shared(arrays) for arrays in zip(*per_model, strict=True)]
        if not all(map(_is_known, per_output)):
            return None
        inputs = [self._known[name] for name in node.input if name in self._known]
        if orders(node) and any(map(varies, inputs)) and node.output[0] in self._results_and_choices:
            return None
        facts = facts_of(node, inputs, per_output)
        if facts is None:
            return None
        self.facts += facts
        return per_output

    def _check_empty(self, node: onnx.NodeProto) -> None:
        """Whether a result has no elements whatever the sizes: sizes at which it has some would find it a constant.

        Raises:
            DynamicDimensionError: that is not known.
        """
        self.facts += cut_facts(node, self._at)
        if node.op_type in _SHRINKING and len({known.get(node.input[0]) for known in self._dims}) > 1:
            raise untold(node, "makes nothing of any sample size")

    def _is_alike(self, node: onnx.NodeProto, index: int) -> bool:
        """Whether a node computes from the same arrays as in the first model."""
        known = [self._known.get(name) for name in node.input if name]
        is_empty = any(name in self._empty for name in node.output)
        return not is_empty and all(arrays is not None and arrays[index] is arrays[0] for arrays in known)

    def _evaluated(self, node: onnx.NodeProto, index: int) -> list[Array] | None:
        if node.op_type in ("Shape", "Size"):
            known = self._known.get(node.input[0])
            dims = known[index].shape if known is not None else self._dims[index].get(node.input[0])
            return None if dims is None else [_shape(node, dims)]
        if node.output and all(name in self._empty for name in node.output if name):
            return [self._empty[name][index] if name else np.empty(0) for name in node.output]
        if not all(name in self._known for name in node.input if name):
            return None
        if node.op_type == "ConstantOfShape":
            return _filled(node, self._known[node.input[0]][index])
        feeds = {name: self._known[name][index] for name in node.input if name}
        return evaluated(node, feeds, self._models[index]) if self._is_small(node, feeds, index) else None


def _is_known(arrays: Sequence[Array]) -> bool:
    """Whether one result at several sizes counts as known: it is the same, or it is a shape or something like it."""
    first = arrays[0]
    if all(array is first for array in arrays):  # as `_shared` has them
        return True
    if first.size > MAX_SIZES or any(array.shape != first.shape for array in arrays):
        return False
    return first.dtype.kind in "iu" or (first.ndim <= 1 and first.size <= _MOST_DIMS and all(map(is_whole, arrays)))


def _shared(arrays: Sequence[Array]) -> list[Array]:
    """The first array wherever others equal it: what follows from it is then computed once."""
    first = arrays[0]
    return [first if array is first or _same(array, first) else array for array in arrays]


def _same(a: Array, b: Array) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.size > MAX_FOLDED_ELEMENTS:  # a number at every place of a shape
        a, b = a.flat[:1], b.flat[:1]
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


def _filled(node: onnx.NodeProto, dims: Array) -> list[Array] | None:
    """One number at every place, once in memory; None where it is too large, or dims are negative."""
    if math.prod(dims.tolist()) > MAX_FILLED_ELEMENTS or dims.min(initial=0) < 0:
        return None
    value = next(
        (numpy_helper.to_array(a.t).reshape(()) for a in node.attribute if a.name == "value"),
        np.zeros((), np.float32),
    )
    return [np.broadcast_to(value, tuple(dims.tolist()))]


def evaluated(node: onnx.NodeProto, feeds: dict[str, Array], model: onnx.ModelProto) -> list[Array] | None:
    """A node's results by onnx's reference implementation; None where it fails or they are large."""
    places = [name and f"x{list(feeds).index(name)}" for name in node.input]
    made = [name and f"y{number}" for number, name in enumerate(node.output)]
    alike = onnx.NodeProto(op_type=node.op_type, input=places, output=made, attribute=node.attribute)
    kinds = tuple((array.dtype, array.shape) for array in feeds.values())
    opsets = tuple((entry.domain, entry.version) for entry in model.opset_import)
    try:
        operator = _operator(alike.SerializeToString(deterministic=True), kinds, opsets)
        results = operator.run(None, {f"x{number}": array for number, array in enumerate(feeds.values())})
    except Exception as error:  # noqa: BLE001 - onnx's evaluator raises anything; what it cannot fold is left in the graph
        logger.debug("%s %s is not folded: %s", node.op_type, node.name, error)
        return None
    if not all(isinstance(r, (np.ndarray, np.generic)) and r.size <= MAX_FOLDED_ELEMENTS for r in results):
        return None
    named = iter(np.asarray(result) for result in results)
    return [next(named) if name else np.empty(0) for name in node.output]


@lru_cache(maxsize=256)
def _operator(node: bytes, kinds: tuple[tuple[Any, Dims], ...], opsets: tuple[tuple[str, int], ...]) -> Any:
    """An evaluator of one node: models compute many shapes alike, and making one takes longer than it runs.

    Args:
        node: serialized.
        kinds: element type and shape of each operand.
        opsets: domains and versions.
    """
    from onnx.reference import ReferenceEvaluator  # importing it takes long, and many models need none

    inputs = [
        onnx.helper.make_tensor_value_info(f"x{number}", onnx.helper.np_dtype_to_tensor_dtype(dtype), dims)
        for number, (dtype, dims) in enumerate(kinds)
    ]
    proto = onnx.NodeProto.FromString(node)
    outputs = [onnx.ValueInfoProto(name=name) for name in proto.output if name]
    graph = onnx.GraphProto(name="constant", node=[proto], input=inputs, output=outputs)
    return ReferenceEvaluator(graph, opsets=dict(opsets))


def _captured(node: onnx.NodeProto) -> Iterable[str]:
    """Names that subgraphs of a node read."""
    for graph in subgraphs(node):
        for inner in graph.node:
            yield from inner.input
            yield from _captured(inner)
        yield from (value.name for value in graph.output)


def _static_dims(values: Iterable[Any]) -> Iterable[tuple[str, Dims]]:
    for value in values:
        dims = static_dims(value)
        if dims is not None:
            yield value.name, dims


def _empty_arrays(values: Iterable[Any]) -> Iterable[tuple[str, Array]]:
    """The values that are known because they have no elements."""
    kinds = {value.name: value.type.tensor_type.elem_type for value in values}
    for name, dims in _static_dims(values):
        is_possible = min(dims, default=0) >= 0 and math.prod(filter(None, dims)) <= MAX_SIZE
        if 0 in dims and is_possible and kinds[name] in BY_ONNX:
            yield name, np.empty(dims, onnx.helper.tensor_dtype_to_np_dtype(kinds[name]))


def _shape(node: onnx.NodeProto, dims: Dims) -> Array:
    if node.op_type == "Size":
        return np.asarray(np.prod(dims, dtype=np.int64))
    window = {attribute.name: attribute.i for attribute in node.attribute}
    return np.asarray(dims[slice(window.get("start"), window.get("end"))], np.int64)
