"""An AMD code object, read as AMD's loader does: ELF header, dynamic symbols, metadata note (LLVM: User Guide for AMDGPU Backend)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import msgpack

MACHINES = {
    0x03F: "gfx90a", 0x041: "gfx1100", 0x049: "gfx1250", 0x04A: "gfx1151", 0x04C: "gfx942", 0x04E: "gfx1201", 0x04F: "gfx950",
}  # fmt: skip
"""EF_AMDGPU_MACH: the low byte of the header's flags."""
_NOTE, _DYNSYM = 7, 11
_METADATA = 32
_SHARED, _AMDGPU, _HSA = 3, 224, 64


@dataclass(frozen=True)
class Symbol:
    """A dynamic symbol."""

    name: str
    is_defined: bool
    bytes: int


@dataclass(frozen=True)
class CodeObject:
    """What the loader looks at.

    Attributes:
        architecture: of the header's flags.
        symbols: the dynamic ones.
        kernels: `amdhsa.kernels` of the metadata.
        target: `amdhsa.target` of the metadata.
    """

    architecture: str
    symbols: list[Symbol]
    kernels: list[dict[str, Any]]
    target: str


def read(code: bytes) -> CodeObject:
    """Parse a linked code object; AssertionError where it is none."""
    assert code[:6] == b"\x7fELF\x02\x01"
    kind, machine = struct.unpack_from("<HH", code, 16)
    assert (code[7], kind, machine) == (_HSA, _SHARED, _AMDGPU)
    (flags,) = struct.unpack_from("<I", code, 48)
    sections, size, count = struct.unpack_from("<Q10xHH", code, 40)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, sections + size * i) for i in range(count)]
    symbols: list[Symbol] = []
    metadata: dict[str, Any] = {}
    for header in headers:
        if header[1] == _DYNSYM:
            symbols += _symbols(code, header, headers[header[6]][4])
        elif header[1] == _NOTE:
            metadata |= _metadata(code, header[4])
    return CodeObject(MACHINES[flags & 0xFF], symbols, metadata["amdhsa.kernels"], metadata["amdhsa.target"])


def _symbols(code: bytes, header: tuple[int, ...], names: int) -> list[Symbol]:
    found = []
    for place in range(header[4] + 24, header[4] + header[5], 24):  # the first is empty
        name, _, _, section, _, size = struct.unpack_from("<IBBHQQ", code, place)
        text = code[names + name : code.index(b"\0", names + name)].decode()
        found.append(Symbol(text, section != 0, size))
    return found


def _metadata(code: bytes, place: int) -> dict[str, Any]:
    name_bytes, bytes_, kind = struct.unpack_from("<III", code, place)
    assert kind == _METADATA
    start = place + 12 + -(-name_bytes // 4) * 4
    found: dict[str, Any] = msgpack.unpackb(code[start : start + bytes_])
    return found
