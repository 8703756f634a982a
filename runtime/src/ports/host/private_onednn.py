"""Make the host port's own copy of oneDNN, which shares no symbol with the other libraries of a process (docs/adr/0020).

``private_onednn.py LIBRARY COPY HEADER`` copies a shared library and changes names in place, each to one of the same length:

- the OpenMP entry points that it calls (``GOMP_*``, ``omp_*``) get an H as first letter and lose their version; libgomp is needed no more.
  ``threads/openmp_abi.cc`` defines them.
- its own functions (``dnnl_*``) become ``dnoK_*``, which HEADER says to the compiler;
- its file name becomes its only name (no SONAME), and its own definitions come first for itself (DT_SYMBOLIC).
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

OPENMP = {"GOMP_": "HOMP_", "omp_": "Hmp_"}
OWN = {"dnnl_": "dnoK_"}
"""Of one hash in the GNU table (33 * h + character), which therefore stays right; that of System V is not read where there is a GNU one."""
OTHER_RUNTIMES = ("libomp", "libiomp")
NULL, NEEDED, SONAME, SYMBOLIC, RPATH, RUNPATH = 0, 1, 14, 16, 15, 29
VERNEED_COUNT = 0x6FFFFFFF
SECTION_TYPES = {"dynamic": 6, "symbols": 11, "hashes": 0x6FFFFFF6, "needed": 0x6FFFFFFE, "versions": 0x6FFFFFFF}
SHARED, X86_64 = 3, 62


class Section(NamedTuple):
    """Where a section's header and bytes are in the file, and the section that its header links."""

    header: int
    offset: int
    size: int
    link: int


class Requirement(NamedTuple):
    """Versions of one library that symbols ask for: a record, and where its list of that many versions is."""

    version: int
    length: int
    file: int
    list_at: int


class Library:
    """A shared library as bytes that are changed in place."""

    def __init__(self, data: bytearray) -> None:
        self.data = data
        if data[:6] != b"\x7fELF\x02\x01" or self.read("<HH", 16) != (SHARED, X86_64):
            raise ValueError("is no shared library for x86-64")
        (table,), (size, count) = self.read("<Q", 40), self.read("<HH", 58)
        headers = [table + i * size for i in range(count)]
        kinds = {kind: name for name, kind in SECTION_TYPES.items()}
        found: dict[str, Section] = {}
        for header in headers:
            _, kind, _, _, offset, length, link = self.read("<IIQQQQI", header)
            if kind in kinds:
                found[kinds[kind]] = Section(header, offset, length, link)
        if missing := sorted(set(SECTION_TYPES) - set(found)):
            raise ValueError(f"has no table of {', '.join(missing)}")
        self.sections = found
        self.strings = self.read("<IIQQQ", headers[found["symbols"].link])[4]
        self.renamed: dict[int, int] = {}

    def read(self, form: str, offset: int) -> tuple[int, ...]:
        """Numbers at an offset."""
        return struct.unpack_from(form, self.data, offset)

    def text(self, string: int) -> str:
        """A string of the dynamic string table."""
        start = self.strings + string
        return self.data[start : self.data.index(0, start)].decode()

    def dynamic(self) -> list[tuple[int, int]]:
        """Tags and values."""
        section = self.sections["dynamic"]
        pairs = struct.iter_unpack("<qQ", self.data[section.offset : section.offset + section.size])
        return [(tag, value) for tag, value in pairs if tag != NULL]

    def set_dynamic(self, entries: list[tuple[int, int]]) -> None:
        """Write them in place of those there are, which are no fewer."""
        section = self.sections["dynamic"]
        packed = b"".join(struct.pack("<qQ", *entry) for entry in entries)
        assert len(packed) < section.size
        self.data[section.offset : section.offset + section.size] = packed.ljust(section.size, b"\0")

    def symbols(self) -> Iterator[tuple[int, int, bool]]:
        """Position, name and whether it is defined, of each."""
        section = self.sections["symbols"]
        for index in range(1, section.size // 24):
            name, _, _, defined_in = self.read("<IBBH", section.offset + index * 24)
            yield index, name, defined_in != 0

    def requirements(self) -> list[tuple[int, Requirement]]:
        """Each with its place in the file, in their order."""
        place, found = self.sections["needed"].offset, []
        while True:
            version, count, file, list_at, following = self.read("<HHIII", place)
            found.append((place, Requirement(version, count, file, place + list_at)))
            if following == 0:
                return found
            place += following

    def versions(self, requirement: Requirement) -> Iterator[tuple[int, int]]:
        """Number and name of each version of a requirement."""
        place = requirement.list_at
        for _ in range(requirement.length):
            _, _, number, name, following = self.read("<IHHII", place)
            yield number, name
            place += following

    def set_requirements(self, kept: list[Requirement]) -> None:
        """Write the records of those kept into the first places; their lists stay where they are."""
        assert kept, "all need some version of the C library"
        places = [place for place, _ in self.requirements()][: len(kept)]
        for place, following, r in zip(places, [*places[1:], 0], kept, strict=True):
            step = max(following - place, 0)
            struct.pack_into("<HHIII", self.data, place, r.version, r.length, r.file, r.list_at - place, step)
        struct.pack_into("<I", self.data, self.sections["needed"].header + 44, len(kept))
        self.set_dynamic([(tag, len(kept) if tag == VERNEED_COUNT else value) for tag, value in self.dynamic()])

    def rename(self, string: int, names: dict[str, str]) -> str | None:
        """Change a name that starts as one of `names`; return the new one."""
        name = self.text(string)
        for before, after in names.items():
            if name.startswith(before):
                start = self.strings + string
                self.data[start : start + len(after)] = after.encode()
                self.renamed[string] = len(after)
                return self.text(string)
        return None

    def check_strings(self) -> None:
        """Names may share bytes: no other one may have changed with those that did.

        Raises:
            ValueError: One did.
        """
        tags = (NEEDED, SONAME, RPATH, RUNPATH)
        used = {name for _, name, _ in self.symbols()} | {value for tag, value in self.dynamic() if tag in tags}
        for _, requirement in self.requirements():
            used |= {requirement.file, *(name for _, name in self.versions(requirement))}
        for string, length in self.renamed.items():
            is_end = self.data[self.strings + string - 1] != 0
            if is_end or used & set(range(string + 1, string + length)):
                raise ValueError(f"has a name that shares bytes with {self.text(string)}")


def separate(library: Library) -> list[str]:
    """Change the library as above and return its own functions' new names.

    Raises:
        ValueError: Its OpenMP is not libgomp, or more of that is needed than entry points.
    """
    needed = {library.text(value) for tag, value in library.dynamic() if tag == NEEDED}
    if others := sorted(name for name in needed if name.startswith(OTHER_RUNTIMES)):
        raise ValueError(f"needs {', '.join(others)}: expected oneDNN on libgomp, or without OpenMP")
    dropped = {name for name in needed if name.startswith("libgomp")}
    requirements = [requirement for _, requirement in library.requirements()]
    of_openmp = {number for r in requirements if library.text(r.file) in dropped for number, _ in library.versions(r)}
    own = []
    for index, name, is_defined in list(library.symbols()):
        new = library.rename(name, OWN if is_defined else OPENMP)
        version_at = library.sections["versions"].offset + 2 * index
        if new and is_defined:
            own.append(new)
        elif new:
            struct.pack_into("<H", library.data, version_at, 1)  # any version
        elif library.read("<H", version_at)[0] & 0x7FFF in of_openmp:
            raise ValueError(f"needs {library.text(name)} of libgomp, which is none of {', '.join(OPENMP)}")
    library.set_requirements([r for r in requirements if library.text(r.file) not in dropped])
    entries = [
        (tag, value)
        for tag, value in library.dynamic()
        if tag not in {SONAME, SYMBOLIC} and not (tag == NEEDED and library.text(value) in dropped)
    ]
    library.set_dynamic([*entries, (SYMBOLIC, 0)])
    library.check_strings()
    return own


def header(own: list[str]) -> str:
    """C text that gives a library's functions their new names."""
    ((before, after),) = OWN.items()
    lines = [f"#define {before}{name.removeprefix(after)} {name}" for name in sorted(own)]
    return "\n".join(["// Generated by private_onednn.py.", "#pragma once", *lines, ""])


def main() -> None:
    """Do it to the files of the command line."""
    source, copy, names = map(Path, sys.argv[1:4])
    try:
        library = Library(bytearray(source.read_bytes()))
        own = separate(library)
    except ValueError as error:
        sys.exit(f"{source}: {error}")
    copy.write_bytes(library.data)
    copy.chmod(0o755)
    names.write_text(header(own))


if __name__ == "__main__":
    main()
