"""Write hipdnn_backend_enums.h from enums.json, the one list of the ABI's numeric values."""

import json
import sys
from pathlib import Path


def render(tables: dict[str, dict[str, int]]) -> str:
    """Return C text with one enum per table; every enum is a 32-bit int, as in the ABI.

    In C++ the int is stated, so that a value outside a table (an extension's attribute, a newer library's status) is a
    value of the type.
    """
    lines = ["/* Generated from enums.json by generate_enums.py. */", "#pragma once", ""]
    for name, values in tables.items():
        if name.startswith("_"):
            continue
        lines += ["#ifdef __cplusplus", f"typedef enum {name} : int {{", "#else", "typedef enum {", "#endif"]
        lines += [f"  {key} = {value}," for key, value in values.items()]
        lines += [f"}} {name};", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    source, destination = map(Path, sys.argv[1:3])
    destination.parent.mkdir(parents=True, exist_ok=True)
    destination.write_text(render(json.loads(source.read_text())))
