"""A model in pieces: one for each step of its program, or for steps that share nodes. Each piece is a model of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, inliner, numpy_helper

from hipdnn_mlir_runtime.errors import HipdnnMlirError

from ..frontend.model_file import ModelFile
from ..frontend.onnx_types import BY_ONNX
from ..frontend.own_operators import RESULTS
from ..frontend.prepare import name_nodes, with_shapes
from ..frontend.shape_inference import static_dims
from ..frontend.subgraphs import subgraphs
from ..ops.evaluate import Array
from ..ops.strides import Dims, Strides, memory_order, packed
from ..placement.graph import captured

_INLINE_BYTES = 1 << 30
"""Weights of more bytes go into a file beside their model, as ONNX wants it from 2 GiB on."""
_OUTSIDE = -1


@dataclass(frozen=True)
class Piece:
    """Nodes that steps of a program compute.

    Attributes:
        steps: Numbers of the steps; none where the nodes only move data, which steps before or after do on the way.
        nodes: Numbers of the nodes, those that only prepare operands included.
        inputs: Values from outside: inputs of the model and outputs of other pieces.
        outputs: Values that other pieces or the model's outputs need.
    """

    steps: tuple[int, ...]
    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class ModelInPieces:
    """A model at some sizes, in pieces.

    A step's name has the ONNX nodes that it was made from. Other nodes, such as reshapes, become no step. They belong to every piece that
    needs their results.

    The models made of pieces have values between steps as inputs and outputs. There these lie in memory as in the program, so that the
    compiler makes the same of the steps: an image may have its channels last, which a Transpose in the model undoes.

    Args:
        file: The model.
        shapes: Dims of its inputs.
        steps: Names of the program's steps, in order.
        results: Dims and strides of the tensors that each step writes.

    Attributes:
        pieces: In the order of their first steps, those without steps last.
    """

    def __init__(
        self,
        file: ModelFile,
        shapes: Mapping[str, Dims],
        steps: Sequence[str],
        results: Sequence[Sequence[tuple[Dims, Strides]]],
    ) -> None:
        self._external = file.external
        proto = with_shapes(file.proto, shapes)
        name_nodes(proto.graph)
        if proto.functions:  # as for the compiler, but for functions of custom operations: ONNX Runtime needs them
            proto = inliner.inline_selected_functions(proto, list(RESULTS), exclude=True)
        self._proto, self._graph = proto, proto.graph
        self._initializers = {tensor.name: tensor for tensor in self._graph.initializer}
        self._inputs = {value.name: value for value in self._graph.input if value.name not in self._initializers}
        self._writer = {name: index for index, node in enumerate(self._graph.node) for name in node.output if name}
        self._reads = [[name for name in (*node.input, *captured(node)) if name] for node in self._graph.node]
        self._bytes = self._inferred_bytes()
        self.pieces = self._cut(steps)
        self._written = {
            name: [tensor for step in piece.steps for tensor in results[step]]
            for piece in self.pieces
            for name in piece.outputs
        }

    def names_of(self, piece: Piece) -> list[str]:
        """The nodes of a piece by name."""
        return [self._graph.node[index].name for index in piece.nodes]

    def to_memory(self, name: str, array: Array) -> Array:
        """A value as the models made of pieces take it."""
        return np.ascontiguousarray(array.transpose(self._order(name, array.shape)))

    def from_memory(self, name: str, array: Array, dims: Dims) -> Array:
        """A value of some dims, as the models made of pieces give it, as the whole model has it."""
        return array.transpose(np.argsort(self._order(name, dims)))

    def batches(self, limit_bytes: int) -> Iterator[list[Piece]]:
        """The pieces in order, as many at a time as have values of no more than this size, as far as sizes are known; one at least."""
        batch: list[Piece] = []
        total = 0
        for piece in self.pieces:
            size = sum(self._bytes.get(name, 0) for name in (*piece.inputs, *piece.outputs))
            if batch and total + size > limit_bytes:
                yield batch
                batch, total = [], 0
            batch.append(piece)
            total += size
        if batch:
            yield batch

    def watched(self, values: Iterable[str]) -> onnx.ModelProto:
        """The whole model with these values, of any type, as its outputs."""
        made = onnx.ModelProto()
        made.CopyFrom(self._proto)
        known = {value.name: value for value in made.graph.output}
        outputs = [known.get(name, onnx.ValueInfoProto(name=name)) for name in values]
        del made.graph.output[:]
        made.graph.output.extend(outputs)
        return made

    def until(self, pieces: Sequence[Piece], values: Mapping[str, Array]) -> onnx.ModelProto:
        """The model from its inputs to the outputs of pieces."""
        outputs = tuple(name for piece in pieces for name in piece.outputs)
        nodes, _ = self._behind(outputs, set())
        return self._model([Piece((), nodes, tuple(self._inputs), outputs)], values, [""])

    def alone(self, piece: Piece, values: Mapping[str, Array]) -> onnx.ModelProto:
        """A piece as a model: it has the values' names, types and dims."""
        return self._model([piece], values, [""])

    def side_by_side(self, pieces: Sequence[Piece], values: Mapping[str, Array]) -> tuple[onnx.ModelProto, list[str]]:
        """Pieces in one model, none of which reads another's results; the names of each one's values begin with its prefix."""
        prefixes = [f"p{index}." for index in range(len(pieces))]
        return self._model(pieces, values, prefixes), prefixes

    def save(self, model: onnx.ModelProto, path: Path) -> None:
        """Write one of these models with its weights.

        Raises:
            HipdnnMlirError: The file cannot be written.
        """
        for tensor in model.graph.initializer:
            if tensor.name in self._external:
                tensor.CopyFrom(numpy_helper.from_array(self._external[tensor.name], tensor.name))
        is_large = sum(tensor.ByteSize() for tensor in model.graph.initializer) > _INLINE_BYTES
        weights = path.with_name(f"{path.name}.weights")
        try:
            weights.unlink(missing_ok=True)  # onnx would append to it
            onnx.save(model, path, save_as_external_data=is_large, location=weights.name)
        except OSError as error:
            raise HipdnnMlirError(f"cannot write: {error.strerror}", where=str(path)) from error

    def _inferred_bytes(self) -> dict[str, int]:
        """Sizes of values, as far as they can be told without running the model."""
        graph = onnx.shape_inference.infer_shapes(self._proto).graph
        sizes = {}
        for value in (*graph.value_info, *graph.input, *graph.output):
            dims, kind = static_dims(value), BY_ONNX.get(value.type.tensor_type.elem_type)
            sizes[value.name] = prod(dims) * kind.bytes if dims is not None and kind is not None else 0
        return sizes

    def _cut(self, steps: Sequence[str]) -> list[Piece]:
        owners = self._owners(steps)
        needed = self._needed_by(owners)
        outputs: dict[tuple[int, ...], list[str]] = {}
        for name, index in self._writer.items():
            if index in owners and needed[name] - {owners[index]}:
                outputs.setdefault(owners[index], []).append(name)
        borders = {name for names in outputs.values() for name in names}
        depends = self._dependent_values()
        moved = [value.name for value in self._graph.output if value.name in depends - borders - self._inputs.keys()]
        cuts = [*sorted(outputs.items()), *(((), [name]) for name in moved)]
        return [Piece(own, *self._behind(names, borders - set(names)), tuple(names)) for own, names in cuts]

    def _owners(self, steps: Sequence[str]) -> dict[int, tuple[int, ...]]:
        """Node -> the steps it is part of, with all steps that share nodes with these. Arithmetic on weights is part of none."""
        depends = self._dependent_values()
        by_name: dict[str, list[int]] = {}
        for index, node in enumerate(self._graph.node):
            for part in node.name.split("+") if depends.intersection(node.output) else ():
                by_name.setdefault(part, []).append(index)
        owners: dict[int, tuple[int, ...]] = {}
        for number, name in enumerate(steps):
            found = {index for part in name.split("+") for index in by_name.get(part, ())}
            joined = {owners[index] for index in found if index in owners}
            merged = tuple(sorted({number}.union(*joined)))
            owners.update({index: merged for index, own in owners.items() if own in joined})
            owners.update(dict.fromkeys(found, merged))
        for index, node in enumerate(self._graph.node):  # in the weights before it, of which the step has its name
            before = self._writer.get(node.input[0], -1) if node.op_type == "BatchNormalization" else -1
            if before in owners:
                owners.setdefault(index, owners[before])
        return owners

    def _dependent_values(self) -> set[str]:
        """The values that depend on inputs of the model."""
        depends = set(self._inputs)
        for node, reads in zip(self._graph.node, self._reads, strict=True):
            if depends.intersection(reads):
                depends.update(filter(None, node.output))
        return depends

    def _needed_by(self, owners: Mapping[int, tuple[int, ...]]) -> dict[str, set[tuple[int, ...]]]:
        """Value -> the steps that need it, also through nodes that are part of no step; for outputs of the model also `_OUTSIDE`."""
        needed: dict[str, set[tuple[int, ...]]] = {name: set() for name in self._writer}
        for value in self._graph.output:
            needed.setdefault(value.name, set()).add((_OUTSIDE,))
        for index, node in reversed(list(enumerate(self._graph.node))):
            by = {owners[index]} if index in owners else set().union(*(needed[name] for name in node.output if name))
            for name in self._reads[index]:
                needed.setdefault(name, set()).update(by)
        return needed

    def _behind(self, outputs: Iterable[str], borders: set[str]) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """The nodes that values need, and what these read from outside: inputs of the model and values at borders."""
        nodes: set[int] = set()
        inputs: dict[str, None] = {}
        stack = list(outputs)
        while stack:
            name = stack.pop()
            if name in borders or name in self._inputs:
                inputs[name] = None
            elif name in self._writer and self._writer[name] not in nodes:
                nodes.add(self._writer[name])
                stack += reversed(self._reads[self._writer[name]])
        return tuple(sorted(nodes)), tuple(inputs)

    def _model(self, pieces: Sequence[Piece], values: Mapping[str, Array], prefixes: Sequence[str]) -> onnx.ModelProto:
        made = onnx.ModelProto(ir_version=self._proto.ir_version)
        made.opset_import.extend(self._proto.opset_import)
        made.functions.extend(self._proto.functions)
        made.graph.name = self._graph.name or "model"
        declared = {value.name: value for value in self._graph.value_info}
        used: set[str] = set()
        for piece, prefix in zip(pieces, prefixes, strict=True):
            written = [name for index in piece.nodes for name in self._graph.node[index].output if name]
            names = {name: prefix + name for name in (*piece.inputs, *written)}
            for name in piece.inputs:
                names[name] = self._add_input(made.graph, name, prefix, values[name])
            moved = {name: f"{prefix}{name}/inside" for name in piece.outputs if self._is_moved(name, values[name])}
            for index in piece.nodes:
                made.graph.node.append(_renamed(self._graph.node[index], names | moved))
                used.update(self._reads[index])
            for name in piece.outputs:
                self._add_output(made.graph, name, prefix, moved.get(name), values[name])
            for name in set(written).intersection(declared) - set(piece.outputs):
                made.graph.value_info.add().CopyFrom(declared[name])
                made.graph.value_info[-1].name = names[name]
        made.graph.initializer.extend(tensor for name, tensor in self._initializers.items() if name in used)
        return made

    def _add_input(self, graph: onnx.GraphProto, name: str, prefix: str, array: Array) -> str:
        """Declare a value as an input; returns the name under which nodes read it."""
        graph.input.append(_typed(prefix + name, self.to_memory(name, array)))
        if not self._is_moved(name, array):
            return prefix + name
        inside = f"{prefix}{name}/inside"
        order = [int(axis) for axis in np.argsort(self._order(name, array.shape))]
        graph.node.append(helper.make_node("Transpose", [prefix + name], [inside], f"{name}/from memory", perm=order))
        return inside

    def _add_output(self, graph: onnx.GraphProto, name: str, prefix: str, inside: str | None, array: Array) -> None:
        """Declare a value as an output; `inside` is the name under which a node writes it, where it lies otherwise in memory."""
        graph.output.append(_typed(prefix + name, self.to_memory(name, array)))
        if inside is not None:
            order = self._order(name, array.shape)
            graph.node.append(helper.make_node("Transpose", [inside], [prefix + name], f"{name}/to memory", perm=order))

    def _is_moved(self, name: str, array: Array) -> bool:
        return self._order(name, array.shape) != tuple(range(array.ndim))

    def _order(self, name: str, dims: Dims) -> tuple[int, ...]:
        """The dimensions of a value from the slowest to the fastest in the program's memory."""
        for found, strides in self._written.get(name, ()):
            axes = [axis for axis in memory_order(found, strides) if found[axis] > 1]
            units = [axis for axis, size in enumerate(found) if size == 1]  # anywhere: their strides mean nothing
            expected = packed(found, [*units, *axes])
            if found == dims and axes != sorted(axes) and all(strides[axis] == expected[axis] for axis in axes):
                return (*units, *axes)
        return tuple(range(len(dims)))


def _typed(name: str, array: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def _renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """A node that reads and writes values of other names, and so do its subgraphs."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    made.input[:] = [names.get(name, name) for name in node.input]
    made.output[:] = [names.get(name, name) for name in node.output]
    for graph in subgraphs(made):
        inner = [_renamed(each, names) for each in graph.node]
        del graph.node[:]
        graph.node.extend(inner)
        for value in graph.output:
            value.name = names.get(value.name, value.name)
    return made
