"""Writes the flatbuffers of hipDNN's plugin interface with Google's library, from the descriptors of a program's executable."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import flatbuffers

from hipdnn_mlir_runtime.abi import Attribute, DataType, Descriptor

TABLES = json.loads((Path(__file__).parents[2] / "third_party" / "hipdnn" / "graph_tables.json").read_text())
# What a value is stored as: its place in the union, the format of its struct, how the tensor's bytes are read.
_VALUES = {
    DataType.FLOAT: (1, "<f", "<f"),
    DataType.HALF: (2, "<f", "<e"),
    DataType.BFLOAT16: (3, "<f", "bf16"),
    DataType.FP8_E4M3: (4, "<B", "<B"),
    DataType.FP8_E5M2: (4, "<B", "<B"),
    DataType.FP8_E8M0: (4, "<B", "<B"),
    DataType.INT32: (5, "<i", "<i"),
    DataType.INT8: (4, "<B", "<B"),
    DataType.UINT8: (4, "<B", "<B"),
    DataType.DOUBLE: (6, "<d", "<d"),
    DataType.INT64: (7, "<q", "<q"),
    DataType.BOOLEAN: (8, "<?", "<?"),
}


def slots(table: str) -> dict[str, int]:
    """The slots of a table's fields by name; of a union, its type's."""
    return _slots(TABLES["tables"][table])


def _slots(fields: Sequence[Sequence[str]]) -> dict[str, int]:
    found, slot = {}, 0
    for name, kind in fields:
        found[name] = slot
        slot += 2 if kind == "union" else 1
    return found


class Writer:
    """One buffer under construction."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder(1024)

    def table(self, fields: dict[int, tuple[str, Any]]) -> int:
        """A table; fields by slot, each a kind (`u8`, `i32`, `i64`, `f32`, `offset`) and a value. Every one is written, defaults too."""
        put = {
            "u8": self.builder.PrependUint8Slot,
            "i32": self.builder.PrependInt32Slot,
            "i64": self.builder.PrependInt64Slot,
            "f32": self.builder.PrependFloat32Slot,
        }
        self.builder.StartObject(max(fields, default=-1) + 1)
        for slot, (kind, value) in fields.items():
            if kind == "offset":
                self.builder.PrependUOffsetTRelativeSlot(slot, value, 0)
            else:
                put[kind](slot, value, None)
        return int(self.builder.EndObject())

    def vector(self, code: str, values: Sequence[int]) -> int:
        """A vector of integers, in the format of `struct`."""
        size = struct.calcsize(code)
        self.builder.StartVector(size, len(values), size)
        put = {"q": self.builder.PrependInt64, "i": self.builder.PrependInt32, "B": self.builder.PrependUint8}[code]
        for value in reversed(values):
            put(value)
        return int(self.builder.EndVector())

    def offsets(self, tables: Sequence[int]) -> int:
        """A vector of tables."""
        self.builder.StartVector(4, len(tables), 4)
        for offset in reversed(tables):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())

    def text(self, text: str) -> int:
        """A string."""
        return int(self.builder.CreateString(text))

    def structure(self, raw: bytes) -> int:
        """A struct that a union holds, of one number."""
        self.builder.Prep(len(raw), len(raw))
        for byte in reversed(raw):
            self.builder.PrependUint8(byte)
        return int(self.builder.Offset())

    def finish(self, root: int) -> bytes:
        """The buffer."""
        self.builder.Finish(root)
        return bytes(self.builder.Output())


def graph_bytes(
    descriptors: Sequence[Any], *, takes_overrides: bool = False, ragged: Mapping[int, int] | None = None
) -> bytes:
    """A graph as AMD's backend gives it to plugins, from descriptors as docs/program-format.md has them.

    Args:
        descriptors: the last one is the graph.
        takes_overrides: whether executions may come with other shapes.
        ragged: uid of a tensor -> uid of the tensor that has its ragged offsets.
    """
    writer = Writer()
    attributes = [{name: value for name, _, value in listed} for _, listed in descriptors]
    uids = [found.get(Attribute.TENSOR_UNIQUE_ID, [0])[0] for found in attributes]
    tensors, nodes = [], []
    for (kind, _), found in zip(descriptors[:-1], attributes[:-1], strict=True):
        if kind == Descriptor.TENSOR_DESCRIPTOR:
            tensors.append(_tensor(writer, found, ragged or {}))
        else:
            nodes.append(_node(writer, kind, found, uids))
    graph, slot = attributes[-1], slots("Graph")
    fields = {
        slot["name"]: ("offset", writer.text("graph")),
        slot["tensors"]: ("offset", writer.offsets(tensors)),
        slot["nodes"]: ("offset", writer.offsets(nodes)),
        slot["is_override_shape_enabled"]: ("u8", takes_overrides),
    }
    for name in ("compute", "intermediate", "io"):
        kinds = graph.get(Attribute[f"OPERATIONGRAPH_{name.upper()}_DATA_TYPE_EXT"])
        if kinds:
            fields[slot[f"{name}_data_type"]] = ("u8", _data_type(kinds[0]))
    return writer.finish(writer.table(fields))


def configuration(engine: int, knobs: dict[str, int] | None = None) -> bytes:
    """An engine's configuration."""
    writer = Writer()
    setting = slots("KnobSetting")
    settings = []
    for name, value in (knobs or {}).items():
        fields = {
            setting["knob_id"]: ("offset", writer.text(name)),
            setting["value"] + 1: ("offset", writer.table({0: ("i64", value)})),
            setting["value"]: ("u8", 1),
        }
        settings.append(writer.table(fields))
    slot = slots("EngineConfig")
    listed = writer.offsets(settings)
    return writer.finish(writer.table({slot["engine_id"]: ("i64", engine), slot["knobs"]: ("offset", listed)}))


def _data_type(value: int) -> int:
    return 1 + int(TABLES["data_types"].index(DataType(value).name))


def _tensor(writer: Writer, found: dict[int, Any], ragged: Mapping[int, int]) -> int:
    slot = slots("Tensor")
    kind = DataType(found[Attribute.TENSOR_DATA_TYPE][0])
    fields: dict[int, tuple[str, Any]] = {
        slot["uid"]: ("i64", found[Attribute.TENSOR_UNIQUE_ID][0]),
        slot["name"]: ("offset", writer.text(f"t{found[Attribute.TENSOR_UNIQUE_ID][0]}")),
        slot["data_type"]: ("u8", _data_type(kind)),
        slot["strides"]: ("offset", writer.vector("q", found[Attribute.TENSOR_STRIDES])),
        slot["dims"]: ("offset", writer.vector("q", found[Attribute.TENSOR_DIMENSIONS])),
        slot["is_virtual"]: ("u8", found.get(Attribute.TENSOR_IS_VIRTUAL, [False])[0]),
    }
    if Attribute.TENSOR_IS_RUNTIME_PASS_BY_VALUE_EXT in found:
        fields[slot["is_runtime_pass_by_value"]] = ("u8", found[Attribute.TENSOR_IS_RUNTIME_PASS_BY_VALUE_EXT][0])
    if (offsets := ragged.get(found[Attribute.TENSOR_UNIQUE_ID][0])) is not None:
        fields[slot["ragged_offset_tensor"]] = ("i64", offsets)
    if Attribute.TENSOR_BYTE_ALIGNMENT in found:
        fields[slot["alignment"]] = ("i64", found[Attribute.TENSOR_BYTE_ALIGNMENT][0])
    if Attribute.TENSOR_VALUE_EXT in found:
        place, stored, read = _VALUES[kind]
        raw = bytes.fromhex(found[Attribute.TENSOR_VALUE_EXT]["hex"])
        value = struct.unpack("<f", bytes(2) + raw)[0] if read == "bf16" else struct.unpack(read, raw)[0]
        fields[slot["value"]] = ("u8", place)
        fields[slot["value"] + 1] = ("offset", writer.structure(struct.pack(stored, value)))
    return writer.table(fields)


def _node(writer: Writer, kind: int, found: dict[int, Any], uids: Sequence[int]) -> int:
    descriptor = Descriptor(kind).name
    place, operation = next((i, o) for i, o in enumerate(TABLES["nodes"], 1) if o["descriptor"] == descriptor)
    fields: dict[int, tuple[str, Any]] = {}
    for name, slot in _slots(operation["fields"]).items():
        if Attribute[name] in found:
            form = dict(operation["fields"])[name]
            fields[slot] = _field(writer, form.removesuffix("?"), found[Attribute[name]], uids)
    slot = slots("Node")
    own = {slot["attributes"] + 1: ("offset", writer.table(fields)), slot["attributes"]: ("u8", place)}
    own[slot["compute_data_type"]] = ("u8", _data_type(found[Attribute[operation["compute_type"]]][0]))
    return writer.table(own)


def _field(writer: Writer, form: str, value: Any, uids: Sequence[int]) -> tuple[str, Any]:
    match form:
        case "tensor":
            return "i64", uids[value[0]]
        case "[tensor]":
            return "offset", writer.vector("q", [uids[index] for index in value])
        case "[long]" | "[int]":
            return "offset", writer.vector("q" if form == "[long]" else "i", value)
        case "string":
            return "offset", writer.text(value)
        case "[byte]":
            raw = value.encode() if isinstance(value, str) else bytes.fromhex(value["hex"])
            return "offset", writer.vector("B", list(raw))
        case "long" | "int" | "float":
            return {"long": "i64", "int": "i32", "float": "f32"}[form], float(value[0]) if form == "float" else value[0]
        case "DataType":
            return "u8", _data_type(value[0])
        case "ConvMode":
            return "u8", value[0] + 1
        case _:  # an enumeration or a boolean
            return "u8", int(value[0])
