"""The wire format of protocol buffers, as far as it takes to walk a message in a mapped file (protobuf.dev, "Encoding")."""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass

_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10


class WireError(Exception):
    """Bytes that are no message."""


@dataclass(frozen=True)
class Field:
    """One field of a message: its number, where it begins with its tag, and where its contents begin and end."""

    number: int
    first: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """Bytes of the contents."""
        return self.end - self.start

    def bytes(self, data: mmap.mmap | bytes) -> bytes:
        """The whole field."""
        return data[self.first : self.end]


def fields(data: mmap.mmap | bytes, start: int = 0, end: int | None = None) -> Iterator[Field]:
    """The fields of the message in data[start:end].

    Raises:
        WireError: a field reaches over the end, or is of a kind that messages no longer have.
    """
    end = len(data) if end is None else end
    position = start
    while position < end:
        first = position
        tag, position = _read_varint(data, position, end)
        kind = tag & 7
        if kind == _VARINT:
            begin, (_, position) = position, _read_varint(data, position, end)
        elif kind == _LENGTH_DELIMITED:
            length, begin = _read_varint(data, position, end)
            position = begin + length
        elif kind in (_FIXED64, _FIXED32):
            begin, position = position, position + (8 if kind == _FIXED64 else 4)
        else:
            raise WireError(f"field of kind {kind}")
        if position > end:
            raise WireError("a field reaches over the end of its message")
        yield Field(tag >> 3, first, begin, position)


def _read_varint(data: mmap.mmap | bytes, position: int, end: int) -> tuple[int, int]:
    """A number and the position after it."""
    value = 0
    for index in range(_MAX_VARINT_BYTES):
        if position + index >= end:
            break
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise WireError("a number does not end")


def varint(value: int) -> bytes:
    """A number that is not negative."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def length_delimited(number: int, contents: bytes) -> bytes:
    """A field with bytes in it."""
    return varint(number << 3 | _LENGTH_DELIMITED) + varint(len(contents)) + contents
