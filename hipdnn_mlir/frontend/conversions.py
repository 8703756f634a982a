"""ONNX operators that this version of torch-mlir converts wrongly or dies on: they are kept from it and rejected by name."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from .shape_inference import SizesContradictError, static_dims
from .sizes.cuts import PAD_AXES
from .sizes.windows import windows

TRAINING_MODE = 2


@dataclass(frozen=True)
class WrongConversion:
    """One defect: operator, when it shows, and what happens (torch-mlir 20261001)."""

    op: str
    applies: Callable[[onnx.NodeProto], bool]
    what: str


WRONG: tuple[WrongConversion, ...] = (
    WrongConversion("If", lambda _: True, "crashes on some branches; an If with a known condition is inlined before"),
    WrongConversion("Unique", lambda _: True, "crashes"),
    WrongConversion(
        "Split", lambda node: len(node.input) > 1 and bool(node.input[1]), "crashes on sizes, see split_to_slices"
    ),
)


def wrong_conversions(model: onnx.ModelProto) -> list[str]:
    """Operators of the model that must not reach torch-mlir's conversion."""
    graph = model.graph
    return sorted(
        {node.op_type for node in graph.node for wrong in WRONG if node.op_type == wrong.op and wrong.applies(node)}
    )


def drop_dropout(model: onnx.ModelProto) -> None:
    """Replace every Dropout outside training mode by Identity, in place, so that patterns of nodes are found across it.

    Its mask is true everywhere.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    read = {name for node in model.graph.node for name in node.input} | {value.name for value in model.graph.output}
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for copied in nodes:
        node = model.graph.node.add()
        node.CopyFrom(copied)
        if node.op_type != "Dropout":
            continue
        training = node.input[TRAINING_MODE] if len(node.input) > TRAINING_MODE else ""
        if not training or (training in constants and not numpy_helper.to_array(constants[training]).any()):
            masks = [name for name in node.output[1:] if name in read]
            node.op_type = "Identity"
            del node.input[1:], node.output[1:]
            del node.attribute[:]
            for mask in masks:
                sizes, true = f"{mask}.sizes", numpy_helper.from_array(np.ones(1, np.bool_))
                model.graph.node.append(onnx.helper.make_node("Shape", [node.input[0]], [sizes], f"{node.name}.sizes"))
                model.graph.node.append(
                    onnx.helper.make_node("ConstantOfShape", [sizes], [mask], f"{node.name}.mask", value=true)
                )


def shrink_windows(model: onnx.ModelProto) -> None:
    """Cut windows of pools to what they go over where they are longer and ONNX has one all the same, in place.

    ONNX rounds the count of windows that fit towards zero, so that a window longer by less than a stride has a place; torch and
    hipDNN round it down.

    Args:
        model: its values have their inferred types.
    """
    graph = model.graph
    dims = {value.name: static_dims(value) for value in (*graph.input, *graph.output, *graph.value_info)}
    known = {name: sizes for name, sizes in dims.items() if sizes is not None}
    for node in graph.node:
        if node.op_type not in ("AveragePool", "MaxPool") or node.input[0] not in known:
            continue
        found = windows(node, known)
        room = [size + w.padding for size, w in zip(known[node.input[0]][2:], found, strict=False)]
        if not any(w.reach - w.stride < size < w.reach for size, w in zip(room, found, strict=True)):
            continue
        kept = [a for a in node.attribute if a.name not in ("kernel_shape", "strides")]
        cut = [
            ((size - 1) // w.dilation + 1, max(w.stride, size)) if size < w.reach else (w.length, w.stride)
            for size, w in zip(room, found, strict=True)
        ]
        del node.attribute[:]
        lengths, strides = zip(*cut, strict=True)
        node.attribute.extend(
            [*kept, onnx.helper.make_attribute("kernel_shape", lengths), onnx.helper.make_attribute("strides", strides)]
        )


def cut_by_slices(model: onnx.ModelProto) -> None:
    """Have a Slice cut what a Pad by known numbers below 0 would, in place: no engine pads by such.

    Before: `y = Pad(x[5, 4], [0, -1, 2, 0])`. After: `t = Slice(x, [1], [4], [1])`, `y = Pad(t, [0, 0, 2, 0])`.

    Args:
        model: its values have their inferred types.
    """
    graph = model.graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    values = {value.name: value for value in (*graph.input, *graph.value_info)}
    nodes = []
    for node in graph.node:
        pads = constants.get(node.input[1]) if node.op_type == "Pad" and len(node.input) > 1 else None
        dims = static_dims(values[node.input[0]]) if pads is not None and node.input[0] in values else None
        if pads is not None and dims and pads.min(initial=0) < 0 and _pads_with_a_number(node):
            axes = constants[node.input[PAD_AXES]] if len(node.input) > PAD_AXES else np.arange(len(dims))
            before, behind = -np.minimum(pads, 0).reshape(2, -1)
            ends = np.array(dims)[axes] - behind
            name = f"{node.output[0]}.cut"
            kind = onnx.ValueInfoProto(name=name, type=values[node.input[0]].type)
            for axis, size in zip(axes, ends - before, strict=True):
                kind.type.tensor_type.shape.dim[int(axis) % len(dims)].dim_value = size
            graph.value_info.append(kind)
            names = [f"{name}.{part}" for part in ("start", "end", "axes", "pads")]
            for constant, array in zip(names, (before, ends, axes, np.maximum(pads, 0)), strict=True):
                graph.initializer.append(numpy_helper.from_array(array.astype(np.int64), constant))
            nodes.append(onnx.helper.make_node("Slice", [node.input[0], *names[:3]], [name], name=node.name))
            node.input[0], node.input[1] = name, names[3]
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _pads_with_a_number(node: onnx.NodeProto) -> bool:
    return all(attribute.name != "mode" or attribute.s == b"constant" for attribute in node.attribute)


def split_to_slices(model: onnx.ModelProto) -> None:
    """Replace every Split with constant sizes by one Slice per result, in place: torch-mlir's conversion of it crashes.

    Args:
        model: its values have their inferred types.

    Raises:
        SizesContradictError: the sizes are not all of the operand's.
    """
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    dims = {value.name: static_dims(value) for value in (*graph.input, *graph.value_info)}
    dims |= {name: tuple(tensor.dims) for name, tensor in constants.items()}
    nodes = []
    for node in graph.node:
        sizes = constants.get(node.input[1]) if node.op_type == "Split" and len(node.input) > 1 else None
        if sizes is None:
            nodes.append(node)
            continue
        axis, start = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0), 0
        parts, operand = numpy_helper.to_array(sizes).reshape(-1).tolist(), dims.get(node.input[0])
        if len(parts) != len(node.output) or min(parts) < 0 or (operand and sum(parts) != operand[axis]):
            raise SizesContradictError(node, {node.input[0]: operand or ()}, (), f"parts of {parts} along axis {axis}")
        for output, size in zip(node.output, parts, strict=True):
            names = [f"{output}.{part}" for part in ("start", "end", "axis")]
            for name, number in zip(names, (start, start + size, axis), strict=True):
                graph.initializer.append(numpy_helper.from_array(np.array([number], np.int64), name))
            nodes.append(onnx.helper.make_node("Slice", [node.input[0], *names], [output], name=node.name))
            start += size
    del graph.node[:]
    graph.node.extend(nodes)
