"""The checksum of a program file: against damage, not against intent."""

import numpy as np
import numpy.typing as npt

WORD_BYTES = 8
_BLOCK = 1 << 14
"""Words summed at a time, so that they are still in cache for the second sum."""
_MODULUS = 1 << 64


def checksum(data: bytes | npt.NDArray[np.uint8], first_word: int = 0) -> int:
    """Return the sum of ``w[i] * (2 i + 1)`` modulo 2**64 over the 64-bit little-endian words of the data.

    Args:
        data: The bytes; the last word is padded with zeros.
        first_word: Index of the data's first word. Sums of consecutive parts add up to the sum of the whole.
    """
    raw = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
    whole = raw.size // WORD_BYTES * WORD_BYTES
    rest = np.zeros(WORD_BYTES, np.uint8)
    rest[: raw.size - whole] = raw[whole:]
    odd = 2 * np.arange(_BLOCK, dtype=np.uint64) + np.uint64(1)
    total = 0
    for part, start in ((raw[:whole].view("<u8"), first_word), (rest.view("<u8"), first_word + whole // WORD_BYTES)):
        for begin in range(0, part.size, _BLOCK):
            words = part[begin : begin + _BLOCK]
            inner = int(np.dot(words, odd[: words.size]))
            total += inner + 2 * (start + begin) * int(words.sum(dtype=np.uint64))
    return total % _MODULUS


def to_text(text_sum: int, data_sum: int) -> str:
    """Return the file's entry: 16 hexadecimal digits for the program's text, 16 for the tensor data."""
    return f"{text_sum % _MODULUS:016x}{data_sum % _MODULUS:016x}"
