"""Write program_records.h from hipdnn_mlir/program/schema.json: the records of a program file, and a visitor of their fields."""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

TYPES = {
    "text": "std::string",
    "flag": "bool",
    "integer": "std::int64_t",
    "dtype": "DType",
    "size": "typename Stage::Number",
    "json": "typename Stage::Json",
    "value": "typename Stage::Value",
    "descriptor": "typename Stage::Descriptor",
}
"""C++ types; the others are records, unions and choices."""

HEAD = """// Generated from schema.json by generate_records.py.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "program/record_types.h"

namespace hipdnn_rt {
"""

Rows = dict[str, dict[str, Any]]
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1


def cpp_type(schema: dict[str, Any], row: dict[str, Any]) -> str:
    """Return the type of a member."""
    name = row["type"].strip("[]")
    kind = TYPES.get(name, name if name in schema["choices"] else f"{name}<Stage>")
    kind = "std::vector<" * row["type"].count("[") + kind + ">" * row["type"].count("]")
    return f"std::optional<{kind}>" if "default" in row and row["default"] is None else kind


def number(value: int) -> str:
    """Return a C++ literal; the lowest number has none of its own."""
    return "INT64_MIN" if value == LEAST else f"{value}"


def record(schema: dict[str, Any], name: str) -> list[str]:
    """Return the structure of a record."""
    whole = schema["records"][name]
    base = whole.get("includes")
    lines = [
        f"/// {whole['help']}",
        "template <typename Stage>",
        f"struct {name}{f' : {base}<Stage>' if base else ''} {{",
    ]
    visits = [f"    {base}<Stage>::visit(visit, records...);"] if base else []
    for key, row in whole["fields"].items():
        if row.get("reader"):
            continue
        default = row.get("default")
        start = f" = {'true' if default else 'false'}" if row["type"] == "flag" else "{}"
        lines += textwrap.wrap(row["help"], 130, initial_indent="  /// ", subsequent_indent="  /// ")
        lines.append(f"  {cpp_type(schema, row)} {key}{start};")
        low, high = row.get("range", (0, None))
        bounds = number(LEAST if low is None else low), number(GREATEST if high is None else high)
        needed = "false" if "default" in row else "true"
        place = f'{{"{key}", {needed}, {bounds[0]}, {bounds[1]}, {row.get("most", "kListLimit")}}}'
        visits.append(f"    visit(FieldRow{place}, records.{key}...);")
    lines += ["", "  template <typename Visit, typename... Records>"]
    lines += ["  static void visit(Visit&& visit, Records&... records) {", *visits, "  }", "};", ""]
    return lines


def choice(name: str, values: dict[str, str]) -> list[str]:
    """Return an enum and the texts of its values."""
    texts = ", ".join(map(json.dumps, values))
    return [
        f"enum class {name} : std::uint8_t {{ {', '.join(values.values())} }};",
        f"constexpr auto texts_of({name}) {{ return std::to_array<std::string_view>({{{texts}}}); }}",
        "",
    ]


def union(name: str, kinds: dict[str, str]) -> list[str]:
    """Return a variant and the texts by which its records are told apart."""
    texts, types = ", ".join(map(json.dumps, kinds)), ", ".join(f"{kind}<Stage>" for kind in kinds.values())
    return [
        "template <typename Stage>",
        f"struct {name} : std::variant<{types}> {{",
        f"  static constexpr auto kinds = std::to_array<std::string_view>({{{texts}}});",
        "};",
        "",
    ]


def render(schema: dict[str, Any]) -> str:
    """Return the header."""
    lines = [HEAD, f"inline constexpr std::int64_t kProgramFormat = {schema['format']};", ""]
    for name, values in schema["choices"].items():
        lines += choice(name, values)
    lines += ["namespace records {", ""]
    made: set[str] = set()
    for name, whole in schema["records"].items():
        if whole.get("reader"):
            continue
        lines += record(schema, name)
        made.add(name)
        for other, kinds in schema["unions"].items():
            if name in kinds.values() and made.issuperset(kinds.values()):
                lines += union(other, kinds)
    return "\n".join([*lines, "}  // namespace records", "}  // namespace hipdnn_rt", ""])


if __name__ == "__main__":
    source, destination = map(Path, sys.argv[1:3])
    destination.parent.mkdir(parents=True, exist_ok=True)
    destination.write_text(render(json.loads(source.read_text())))
