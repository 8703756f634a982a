"""Write options_table.h from options.json: what a device and the provider are given, with the defaults of the table."""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

TYPES = {
    "flag": "bool",
    "integer": "int",
    "list": "std::vector<std::string>",
    "paths": "std::vector<std::string>",
    "map": "std::vector<std::pair<std::string, std::string>>",
    "sizes": "std::map<std::string, std::vector<std::int64_t>>",
}
"""C++ types; the others are texts."""

HEAD = """// Generated from options.json by generate_options.py.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hipdnn_rt {

/// What the table says of an option beside its default.
struct OptionRow {
  std::string_view name;
  std::string_view type;
  /// What it has no effect without, with spaces between.
  std::string_view needs;
  /// All values of a choice, with '|' between.
  std::string_view choices;
  /// Of an integer.
  std::int64_t least;
  std::int64_t greatest;
};
"""

Rows = dict[str, dict[str, Any]]


def rows_of(table: Rows, place: str) -> Rows:
    """Return the rows that hold in a place, as they do there."""
    return {name: row | row.get(place, {}) for name, row in table.items() if place in row["in"]}


def fields(rows: Rows) -> list[str]:
    """Return the members of a structure."""
    lines = []
    for name, row in rows.items():
        default = row.get("default")
        kind = TYPES.get(row["type"], "std::string")
        if row["type"] == "flag" and "default" in row and default is None:
            kind = "std::optional<bool>"
        lines += textwrap.wrap(row["help"], 130, initial_indent="  /// ", subsequent_indent="  /// ")
        lines.append(f"  {kind} {name} = {'{}' if default is None else json.dumps(default)};")
    return lines


def visitor(function: str, rows: Rows) -> list[str]:
    """Return a function that is called with the row of each option and the members of each structure."""
    lines = [
        "/// Call `visit` with each row and the option's value in each of `options`.",
        "template <typename Visit, typename... Options>",
    ]
    lines.append(f"void {function}(Visit&& visit, Options&... options) {{")
    for name, row in rows.items():
        least, greatest = row.get("range", (0, 0))
        texts = (name, row["type"], " ".join(row.get("needs", ())), "|".join(row.get("choices", ())))
        lines.append(
            f"  visit(OptionRow{{{', '.join(map(json.dumps, texts))}, {least}, {greatest}}}, options.{name}...);"
        )
    return [*lines, "}", ""]


def render(table: Rows) -> str:
    """Return the header."""
    device, provider = rows_of(table, "runtime"), rows_of(table, "provider")
    own = {name: row for name, row in provider.items() if name not in device}
    equal = "  friend auto operator<=>(const DeviceOptions&, const DeviceOptions&) = default;"
    lines = [HEAD, "/// What a device is opened with.", "struct DeviceOptions {", *fields(device), "", equal, "};", ""]
    lines += ["/// The provider's options.", "struct ProviderOptions : DeviceOptions {", *fields(own), "};", ""]
    lines += visitor("visit_device_options", device) + visitor("visit_provider_options", provider)
    return "\n".join([*lines, "}  // namespace hipdnn_rt", ""])


if __name__ == "__main__":
    source, destination = map(Path, sys.argv[1:3])
    destination.parent.mkdir(parents=True, exist_ok=True)
    destination.write_text(render(json.loads(source.read_text())))
