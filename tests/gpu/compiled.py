"""What is checked of compiled code without a GPU."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

import pytest

from hipdnn_mlir.codegen import ARCHITECTURES, GpuKernel

OF_EACH_KIND = ("gfx942", "gfx1100", "sm_90")
"""An architecture of each vendor and each size of a wave."""
ALL = [
    pytest.param(name, marks=[] if name in OF_EACH_KIND else [pytest.mark.nightly]) for name in sorted(ARCHITECTURES)
]
_AMDGPU = 224


def symbols(code: bytes) -> Iterator[tuple[str, int, int]]:
    """Names of an ELF object's symbols, the section of each (0: none defines it), and where in the file it lies."""
    sections, size, count = struct.unpack_from("<Q10xHH", code, 40)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, sections + size * i) for i in range(count)]
    for header in headers:
        if header[1] != 2:  # SHT_SYMTAB
            continue
        names = headers[header[6]][4]
        for place in range(header[4] + 24, header[4] + header[5], 24):
            name, _, _, section, address = struct.unpack_from("<IBBHQ", code, place)
            holder = headers[section] if section < count else headers[0]
            label = code[names + name : code.index(b"\0", names + name)].decode()
            yield label, section, holder[4] + address - holder[3]


def scratch_bytes(code: bytes, name: str) -> int:
    """Memory that a thread of an AMD kernel needs beside its registers, as its descriptor says."""
    (place,) = [place for label, _, place in symbols(code) if label == f"{name}.kd"]
    return int(struct.unpack_from("<I", code, place + 4)[0])


def bytes_of_floats(code: str) -> list[str]:
    """Stores of a float's lowest byte: ptxas of CUDA 13 converts that float to an unsigned integer."""
    stored = re.findall(r"st\.\w+\.[bus]8\s+\[[^]]*\], (%\w+);", code)
    return [name for name in stored if re.search(rf"^\s*\S+\.f32\s+{name},", code, re.MULTILINE)]


def check(kernel: GpuKernel) -> None:
    """The code is of the architecture, has the kernel, and calls nothing from outside; so do the launches before it."""
    for first in kernel.preceded_by:
        check(first)
    if isinstance(kernel.code, str):
        assert f".target {kernel.architecture}" in kernel.code
        assert f".entry {kernel.name}(" in kernel.code
        assert not re.search(r"^\s*(\.extern|call)", kernel.code, re.MULTILINE)
        assert not bytes_of_floats(kernel.code)
        return
    machine, flags = struct.unpack_from("<H", kernel.code, 18)[0], kernel.code[:4]
    assert (flags, machine) == (b"\x7fELF", _AMDGPU)
    assert [label for label, section, _ in symbols(kernel.code) if section == 0] == []
    assert scratch_bytes(kernel.code, kernel.name) == 0
    assert f"{kernel.name}.kd".encode() in kernel.code
