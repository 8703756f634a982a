"""Floats in the text of LLVM IR, from how torch-mlir's LLVM prints them to how llvmlite's reads them.

The newer LLVM prints the shortest decimals that round to a float (the older one wants decimals that are exact), bits in the float's own
width (`f0x3FB8AA3B`) and words (`+inf`, `+qnan`). Once llvmlite has that LLVM this file can go.
"""

import re
from typing import Any

import ml_dtypes
import numpy as np

_TYPES: dict[str, tuple[np.dtype[Any], np.dtype[Any]]] = {
    "float": (np.dtype(np.float32), np.dtype(np.uint32)),
    "double": (np.dtype(np.float64), np.dtype(np.uint64)),
    "half": (np.dtype(np.float16), np.dtype(np.uint16)),
    "bfloat": (np.dtype(ml_dtypes.bfloat16), np.dtype(np.uint16)),
}
_TOKEN = re.compile(
    r"\b(?P<type>float|double|half|bfloat)\b"
    r"|(?<=[ (\[,<])(?:(?P<decimal>[+-]?\d+\.\d*(?:e[+-]?\d+)?)|f0x(?P<bits>[0-9A-F]+)|(?P<word>[+-]?(?:inf|q?nan)))(?=[,)\]> ]|$)",
    re.MULTILINE,
)


def respelled(text: str) -> str:
    """The same module with every float as bits; a literal's type is the float type named last before it, as everywhere in LLVM IR."""
    kind = "float"

    def spelled(found: re.Match[str]) -> str:
        nonlocal kind
        if found["type"]:
            kind = found["type"]
            return found[0]
        dtype, bits = _TYPES[kind]
        if found["bits"]:
            value = np.array(int(found["bits"], 16), bits).view(dtype)
        else:
            value = np.array(float(found["decimal"] or found["word"].replace("q", ""))).astype(dtype)
        if kind in ("half", "bfloat"):
            return f"0x{'H' if kind == 'half' else 'R'}{int(value.view(bits)):04X}"
        return f"0x{int(value.astype(np.float64).view(np.uint64)):016X}"

    return _TOKEN.sub(spelled, text)
