"""What is checked of compiled code without a GPU."""

from __future__ import annotations

import re
import struct

import pytest

from hipdnn_mlir.codegen import ARCHITECTURES, GpuKernel

OF_EACH_KIND = ("gfx942", "gfx1100", "sm_90")
"""An architecture of each vendor and each size of a wave."""
ALL = [
    pytest.param(name, marks=[] if name in OF_EACH_KIND else [pytest.mark.nightly]) for name in sorted(ARCHITECTURES)
]
_AMDGPU = 224


def undefined_symbols(code: bytes) -> list[str]:
    """Names of an ELF object's symbols that nothing defines."""
    sections, size, count = struct.unpack_from("<Q10xHH", code, 40)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, sections + size * i) for i in range(count)]
    found = []
    for header in headers:
        if header[1] != 2:  # SHT_SYMTAB
            continue
        names = headers[header[6]][4]
        for place in range(header[4] + 24, header[4] + header[5], 24):
            name, _, _, section = struct.unpack_from("<IBBH", code, place)
            if section == 0:
                found.append(code[names + name : code.index(b"\0", names + name)].decode())
    return found


def scratch_bytes(code: bytes, name: str) -> int:
    """Memory that a thread of an AMD kernel needs beside its registers."""
    sections, size, count = struct.unpack_from("<Q10xHH", code, 40)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, sections + size * i) for i in range(count)]
    for header in headers:
        names = headers[header[6]][4] if header[1] == 2 else 0
        for place in range(header[4] + 24, header[4] + header[5], 24) if names else ():
            label, _, _, section, address = struct.unpack_from("<IBBHQ", code, place)
            if code[names + label :].startswith(f"{name}.kd\0".encode()):
                holder = headers[section]
                return int(struct.unpack_from("<I", code, holder[4] + address - holder[3] + 4)[0])
    raise AssertionError(name)


def check(kernel: GpuKernel) -> None:
    """The code is of the architecture, has the kernel, and calls nothing from outside; so do the launches before it."""
    for first in kernel.preceded_by:
        check(first)
    if isinstance(kernel.code, str):
        assert f".target {kernel.architecture}" in kernel.code
        assert f".entry {kernel.name}(" in kernel.code
        assert not re.search(r"^\s*(\.extern|call)", kernel.code, re.MULTILINE)
        return
    machine, flags = struct.unpack_from("<H", kernel.code, 18)[0], kernel.code[:4]
    assert (flags, machine) == (b"\x7fELF", _AMDGPU)
    assert undefined_symbols(kernel.code) == []
    assert scratch_bytes(kernel.code, kernel.name) == 0
    assert f"{kernel.name}.kd".encode() in kernel.code
