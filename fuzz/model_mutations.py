"""Mutations of ONNX models that keep their structure: what a hostile file lies in, one to three places at a time."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence

import onnx
from google.protobuf.message import DecodeError

NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    16,
    100,
    4096,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    1 << 40,
    (1 << 62),
    (1 << 63) - 1,
    -(1 << 63),
)
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-45, 3.4e38, -3.4e38, float("inf"), float("-inf"), float("nan"))
NAMES = ("", "x", "y", "\x1b[2J", "a/b", "../up", "\x00", "%s%n", "name" * 5000, "é中", "<script>")
PATHS = (
    "",
    "/etc/passwd",
    "../../etc/passwd",
    ".",
    "weights/../../x",
    "model.onnx",
    "\x00",
    "/dev/zero",
    "/proc/self/mem",
    "a" * 5000,
)
DOMAINS = ("", "ai.onnx", "com.microsoft", "hipdnn", "ai.onnx.ml", "no.such.domain")
_MOST_EDITS = 3

Draw = random.Random
Edit = Callable[[onnx.ModelProto, Sequence[bytes], Draw], None]


def mutated(seeds: Sequence[bytes], draw: Draw) -> bytes:
    """A mutation of one of the seeds."""
    model = onnx.ModelProto()
    data = draw.choice(seeds)
    try:
        model.ParseFromString(data)
    except DecodeError:
        return _damaged(data, draw)
    for _ in range(draw.randint(1, _MOST_EDITS)):
        edit = draw.choice(EDITS)
        before = copy.deepcopy(model)
        try:
            edit(model, seeds, draw)
        except (LookupError, ValueError, TypeError, DecodeError, RuntimeError):
            model = before  # nothing there to edit, a value that its field does not take, data in a file with no possible name
    data = model.SerializeToString()
    return _damaged(data, draw) if draw.random() < 0.02 else data


def _damaged(data: bytes, draw: Draw) -> bytes:
    changed = bytearray(data or b"\x08")
    changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed[: draw.randrange(1, len(changed) + 1)] if draw.random() < 0.3 else changed)


def _attribute(model: onnx.ModelProto, _: Sequence[bytes], draw: Draw) -> None:
    node = draw.choice(model.graph.node)
    kind = draw.randrange(6)
    if kind == 0:
        name = draw.choice(
            ["axis", "axes", "keepdims", "to", "perm", "pads", "strides", "dilations", "group", draw.choice(NAMES)]
        )
        value = draw.choice(
            [
                draw.choice(NUMBERS),
                [draw.choice(NUMBERS) for _ in range(draw.randrange(1, 5))],
                draw.choice(FLOATS),
                draw.choice(NAMES),
            ]
        )
        node.attribute.append(onnx.helper.make_attribute(name, value))
        return
    attribute = draw.choice(node.attribute)
    if kind == 1:
        node.attribute.remove(attribute)
    elif kind == 2:
        attribute.type = draw.randrange(15)
    elif attribute.ints and draw.random() < 0.3:
        attribute.ints.append(draw.choice(NUMBERS)) if draw.random() < 0.5 else attribute.ints.pop()
    elif attribute.ints:
        attribute.ints[draw.randrange(len(attribute.ints))] = draw.choice(NUMBERS)
    elif attribute.type == onnx.AttributeProto.INT:
        attribute.i = draw.choice(NUMBERS) if draw.random() < 0.5 else attribute.i + draw.choice((-1, 1))
    elif attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f = draw.choice(FLOATS)
    elif attribute.type == onnx.AttributeProto.STRING:
        attribute.s = draw.choice(NAMES).encode()
    elif attribute.type == onnx.AttributeProto.TENSOR:
        _change_tensor(attribute.t, draw)
    else:
        raise ValueError


def _shape(model: onnx.ModelProto, _: Sequence[bytes], draw: Draw) -> None:
    value = draw.choice([*model.graph.input, *model.graph.output, *model.graph.value_info])
    tensor = value.type.tensor_type
    kind = draw.randrange(6)
    if kind == 0:
        tensor.elem_type = draw.randrange(24)
    elif kind == 1:
        tensor.ClearField("shape")
    elif kind == 2:
        tensor.shape.dim.add().dim_value = draw.choice(NUMBERS)
    elif kind == 3:
        del tensor.shape.dim[draw.randrange(len(tensor.shape.dim))]
    elif kind == 4:
        draw.choice(tensor.shape.dim).dim_param = draw.choice(["n", "m", *NAMES])
    else:
        draw.choice(tensor.shape.dim).dim_value = draw.choice(NUMBERS)


def _name(model: onnx.ModelProto, _: Sequence[bytes], draw: Draw) -> None:
    """Operands become others: cycles, values of no node, two of one name."""
    node = draw.choice(model.graph.node)
    known = [name for each in model.graph.node for name in (*each.input, *each.output)]
    names = draw.choice([node.input, node.output])
    name = draw.choice(known) if draw.random() < 0.7 else draw.choice(NAMES)
    kind = draw.randrange(5)
    if kind == 0:
        names.append(name)
    elif kind == 1:
        del names[draw.randrange(len(names))]
    elif kind == 2:
        draw.choice([node, model.graph, *model.graph.input, *model.graph.output, *model.graph.initializer]).name = name
    else:
        names[draw.randrange(len(names))] = name


def _nodes(model: onnx.ModelProto, seeds: Sequence[bytes], draw: Draw) -> None:
    nodes = model.graph.node
    node = draw.choice(nodes)
    kind = draw.randrange(5)
    if kind == 0:
        nodes.remove(node)
    elif kind == 1:
        nodes.append(copy.deepcopy(node))
    elif kind == 2:
        node.domain = draw.choice(DOMAINS)
    else:
        other = draw.choice(_of(draw.choice(seeds)).graph.node)
        node.op_type, node.domain = other.op_type, other.domain
        if kind == 3:
            del node.attribute[:]
            node.attribute.extend(other.attribute)


def _spliced(model: onnx.ModelProto, seeds: Sequence[bytes], draw: Draw) -> None:
    """A node of another model behind, on values of this one."""
    other = copy.deepcopy(draw.choice(_of(draw.choice(seeds)).graph.node))
    known = [name for each in model.graph.node for name in each.output]
    other.input[:] = [draw.choice(known) for _ in other.input]
    other.output[:] = [f"spliced{i}_{draw.randrange(1000)}" for i in range(len(other.output))]
    model.graph.node.append(other)
    model.graph.output[draw.randrange(len(model.graph.output))].name = other.output[0]


def _initializer(model: onnx.ModelProto, _: Sequence[bytes], draw: Draw) -> None:
    """A weight changes, a small input becomes one, or one becomes an input."""
    kind = draw.randrange(3)
    if kind == 0 and model.graph.initializer:
        tensor = draw.choice(model.graph.initializer)
        model.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        model.graph.initializer.remove(tensor)
    elif kind == 1:
        value = draw.choice(model.graph.input)
        dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        tensor = model.graph.initializer.add(name=value.name, data_type=value.type.tensor_type.elem_type, dims=dims)
        count = min(max(onnx.numpy_helper.np.prod(dims, dtype=float), 0), 4096)
        width = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        tensor.raw_data = draw.choice([bytes(int(count) * width), draw.randbytes(int(count) * width)])
        if draw.random() < 0.7:
            model.graph.input.remove(value)
    else:
        _change_tensor(draw.choice(model.graph.initializer), draw)


def _change_tensor(tensor: onnx.TensorProto, draw: Draw) -> None:
    kind = draw.randrange(6)
    if kind == 0:
        tensor.data_type = draw.randrange(24)
    elif kind == 1:
        tensor.dims[draw.randrange(len(tensor.dims))] = draw.choice(NUMBERS)
    elif kind == 2:
        tensor.raw_data = tensor.raw_data[: draw.randrange(len(tensor.raw_data) + 1)]
    elif kind == 3:
        array = onnx.numpy_helper.to_array(tensor).copy()
        array.flat[draw.randrange(array.size)] = draw.choice(NUMBERS[:-6] if array.dtype.kind in "iu" else FLOATS)
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    elif kind == 4:
        tensor.dims.append(draw.choice(NUMBERS))
    else:
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, values in {"location": PATHS, "offset": NUMBERS, "length": NUMBERS}.items():
            if draw.random() < 0.8:
                tensor.external_data.add(key=key, value=str(draw.choice(values)))


def _versions(model: onnx.ModelProto, _: Sequence[bytes], draw: Draw) -> None:
    kind = draw.randrange(4)
    if kind == 0:
        model.ir_version = draw.choice([*range(15), *NUMBERS])
    elif kind == 1:
        model.opset_import.add(domain=draw.choice(DOMAINS), version=draw.choice([*range(26), *NUMBERS]))
    elif kind == 2:
        del model.opset_import[draw.randrange(len(model.opset_import))]
    else:
        draw.choice(model.opset_import).version = draw.choice([*range(26), *NUMBERS])


def _of(data: bytes) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.ParseFromString(data)
    return model


EDITS: tuple[Edit, ...] = (
    _attribute,
    _attribute,
    _shape,
    _shape,
    _name,
    _nodes,
    _spliced,
    _initializer,
    _initializer,
    _versions,
)
