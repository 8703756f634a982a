"""Write graph_tables.h from graph_tables.json, the one list of what hipDNN's flatbuffers hold in which slot."""

import json
import sys
from pathlib import Path
from typing import Any

KINDS = {
    "tensor": "tensor",
    "tensor?": "optional_tensor",
    "[tensor]": "tensors",
    "long": "int64",
    "long?": "optional_int64",
    "[long]": "int64s",
    "int": "int32",
    "int?": "optional_int32",
    "[int]": "int32s",
    "float?": "optional_float",
    "bool": "boolean",
    "bool?": "optional_boolean",
    "string": "text",
    "[byte]": "bytes",
    "DataType": "data_type",
    "ConvMode": "convolution_mode",
    "PointwiseMode": "pointwise_mode",
    "ReductionMode": "reduction_operator",
    "ResampleMode": "resample_mode",
    "PaddingMode": "padding_mode",
    "NormFwdPhase": "norm_phase",
    "DiagonalAlignment": "diagonal_alignment",
    "AttentionImplementation": "attention_implementation",
}
"""The C++ enumerator of a field's kind."""

HEAD = """// Generated from graph_tables.json by generate_graph_tables.py.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "hipdnn_backend.h"

namespace hipdnn_plugin {
"""


def slots(fields: list[list[str]]) -> list[tuple[str, int]]:
    """Each field's name and slot; a union's value comes one after its type, whose slot this is."""
    placed, slot = [], 0
    for name, kind in fields:
        placed.append((name, slot))
        slot += 2 if kind == "union" else 1
    return placed


def render(tables: dict[str, Any]) -> str:
    """Return C++ text: an enum of slots for each table, and a row for each operation."""
    lines = [HEAD, f"enum class Kind {{ {', '.join(KINDS.values())} }};", ""]
    lines += ["struct Field {", "  int slot;", "  Kind kind;", "  hipdnnBackendAttributeName_t attribute;", "};", ""]
    lines += [
        "/// An operation of a graph: its place in the union is one more than in `operations`.",
        "struct Operation {",
    ]
    lines += [
        "  std::string_view name;",
        "  hipdnnBackendDescriptorType_t type;",
        "  hipdnnBackendAttributeName_t compute_type;",
    ]
    lines += ["  std::span<const Field> fields;", "};", ""]
    for name, fields in tables["tables"].items():
        lines.append(f"namespace {name}Slot {{")
        lines += [f"inline constexpr int {field} = {slot};" for field, slot in slots(fields)]
        lines += [f"}}  // namespace {name}Slot", ""]
    lines += [f"enum class TensorValue {{ none, {', '.join(tables['tensor_values'])} }};", ""]
    types = ", ".join(f"HIPDNN_DATA_{name}" for name in tables["data_types"])
    lines += [f"inline constexpr std::array data_types{{{types}}};", ""]
    for node in tables["nodes"]:
        lines.append(f"inline constexpr Field {node['name']}_fields[] = {{")
        kinds = dict(node["fields"])
        lines += [
            f"    {{{slot}, Kind::{KINDS[kinds[name]]}, HIPDNN_ATTR_{name}}}," for name, slot in slots(node["fields"])
        ]
        lines += ["};", ""]
    lines.append("inline constexpr Operation operations[] = {")
    for node in tables["nodes"]:
        lines.append(
            f'    {{"{node["name"]}", HIPDNN_BACKEND_{node["descriptor"]}, HIPDNN_ATTR_{node["compute_type"]}, {node["name"]}_fields}},'
        )
    lines += ["};", "", "}  // namespace hipdnn_plugin", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    source, destination = map(Path, sys.argv[1:3])
    destination.parent.mkdir(parents=True, exist_ok=True)
    destination.write_text(render(json.loads(source.read_text())))
