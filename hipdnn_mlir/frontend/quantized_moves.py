"""Data movement between DequantizeLinear and QuantizeLinear, done with the integers."""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .shape_inference import attributes_of

_MOVES = frozenset(
    {"DepthToSpace", "Flatten", "Gather", "Identity", "MaxPool", "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze",
     "Transpose", "Unsqueeze"}
)  # fmt: skip
"""What gives elements of its first operand as they are."""
_Parameters = tuple[float, int, np.dtype]


def move_integers(graph: onnx.GraphProto) -> None:
    """Have data movement read integers, and dequantize its results, in place; a QuantizeLinear that gives them back goes.

    Reshapes, transposes, slices, maxima of windows and the like of DequantizeLinear read what that reads; so does Concat, whose operands of
    other scales are quantized one by one. Unused nodes stay.

    Args:
        graph: of one of the opsets that are imported.
    """
    if any(node.op_type == "DequantizeLinear" for node in graph.node):
        moved = list(_Moves(graph).run())
        del graph.node[:]
        graph.node.extend(moved)


def state_constants(graph: onnx.GraphProto) -> None:
    """Have scales, zero points and weights that nodes state, as PyTorch's exporters write them, as initializers, in place.

    What is returned stays.
    """
    if not any(node.op_type == "DequantizeLinear" for node in graph.node):
        return
    kept, returned = [], {value.name for value in graph.output}
    for node in graph.node:
        is_tensor = node.op_type == "Constant" and node.attribute[0].name == "value"
        if is_tensor and node.output[0] not in returned:
            graph.initializer.add().CopyFrom(node.attribute[0].t)
            graph.initializer[-1].name = node.output[0]
        else:
            kept.append(node)
    del graph.node[:]
    graph.node.extend(kept)


class _Moves:
    """One walk over a graph."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._nodes = list(graph.node)
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        for node in self._nodes:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)
        self._returned = {value.name for value in graph.output}
        self._stands_for: dict[str, list[str]] = {}
        """Value -> integers, scale and zero point that it is made of."""

    def run(self) -> Iterator[onnx.NodeProto]:
        """The nodes in the place of those there were."""
        for node in self._nodes:
            if node.op_type == "DequantizeLinear":
                if self._parameters(node.input) is not None and not attributes_of(node).get("output_dtype", 0):
                    self._stands_for[node.output[0]] = list(node.input)
                yield node
            elif node.op_type == "QuantizeLinear" and self._gives_back(node):
                yield helper.make_node("Identity", [self._stands_for[node.input[0]][0]], node.output, name=node.name)
            elif node.op_type == "Concat":
                yield from self._concatenated(node)
            elif self._is_move(node) and node.input[0] in self._stands_for:
                integers, *how = self._stands_for[node.input[0]]
                yield from self._on_integers(node, [integers, *node.input[1:]], how)
            else:
                yield node

    def _is_move(self, node: onnx.NodeProto) -> bool:
        if node.op_type == "Resize":
            stated = attributes_of(node)
            is_cut = stated.get("coordinate_transformation_mode") in ("tf_crop_and_resize", b"tf_crop_and_resize")
            return not is_cut and stated.get("mode", "nearest") in ("nearest", b"nearest")
        return node.op_type in _MOVES and (node.op_type != "MaxPool" or len(node.output) == 1)

    def _gives_back(self, node: onnx.NodeProto) -> bool:
        source = self._stands_for.get(node.input[0])
        return source is not None and self._parameters(source) == self._parameters(node.input)

    def _concatenated(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        sources = [self._stands_for.get(name) for name in node.input]
        known = [source for source in sources if source is not None]
        if len(known) != len(sources):
            yield node
            return
        reading = self._readers.get(node.output[0], [])
        is_rounded = (
            len(reading) == 1 and reading[0].op_type == "QuantizeLinear" and node.output[0] not in self._returned
        )
        how = list(reading[0].input[1:3]) if is_rounded else known[0][1:]
        wanted = self._parameters(["", *how])
        integers = []
        for place, source in enumerate(known):
            if self._parameters(source) == wanted:
                integers.append(source[0])
                continue
            if not is_rounded or wanted is None:
                yield node
                return
            integers.append(f"{node.output[0]}_{place}_integers")
            name = f"{node.name}_{place}"
            yield helper.make_node("QuantizeLinear", [node.input[place], *how], integers[-1:], name=name)
        yield from self._on_integers(node, integers, how)

    def _on_integers(self, node: onnx.NodeProto, inputs: Sequence[str], how: Sequence[str]) -> Iterator[onnx.NodeProto]:
        made = onnx.NodeProto()
        made.CopyFrom(node)
        del made.input[:], made.output[:]
        made.input.extend(inputs)
        made.output.extend(f"{name}_integers" for name in node.output)
        yield made
        for name, integers in zip(node.output, made.output, strict=True):
            self._stands_for[name] = [integers, *how]
            yield helper.make_node("DequantizeLinear", [integers, *how], [name], name=f"{name}_dequantized")

    def _parameters(self, inputs: Sequence[str]) -> _Parameters | None:
        """Scale, zero point and type of bytes that have one of each, both known."""
        if len(inputs) != 3 or any(name not in self._constants for name in inputs[1:]):
            return None
        scale, zero = (numpy_helper.to_array(self._constants[name]) for name in inputs[1:])
        if scale.size != 1 or zero.size != 1 or scale.dtype != np.float32 or zero.dtype not in (np.uint8, np.int8):
            return None
        if not scale.item() > 0:  # maxima would be minima
            return None
        return float(scale.item()), int(zero.item()), zero.dtype
