"""Write hipdnn_names_table.h from enums.json: the name of every numeric value of the ABI, for messages."""

import json
import sys
from pathlib import Path


def render(tables: dict[str, dict[str, int]]) -> str:
    """Return C++ text with one array of (value, name) per enum; of two names for one value the first is kept."""
    lines = [
        "// Generated from enums.json by generate_names.py.",
        "#pragma once",
        "",
        "#include <string_view>",
        "",
        "namespace hipdnn_port::names {",
        "",
        "struct Name {",
        "  int value;",
        "  std::string_view name;",
        "};",
        "",
    ]
    for enum, values in tables.items():
        if enum.startswith("_"):
            continue
        first: dict[int, str] = {}
        for name, value in values.items():
            first.setdefault(value, name)
        lines.append(f"inline constexpr Name {enum}_names[] = {{")
        lines += [f'    {{{value}, "{name}"}},' for value, name in sorted(first.items())]
        lines += ["};", ""]
    lines += ["}  // namespace hipdnn_port::names", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    source, destination = map(Path, sys.argv[1:3])
    destination.parent.mkdir(parents=True, exist_ok=True)
    destination.write_text(render(json.loads(source.read_text())))
