"""What NVIDIA's matrix units compute, as the PTX ISA says where a lane's values belong (mma.m16n8k16 and mma.m16n8k32), and its bytes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
_LANE = np.arange(32)
_GROUP, _QUAD = _LANE // 4, _LANE % 4


def products(form: str, *xs: Array) -> Array:
    """The sums of 16 rows and 8 columns, four to a lane: six words of operands, and the sums so far."""
    if form.endswith(".s8"):
        words = [np.ascontiguousarray(x).view(np.int8).reshape(-1, 32, 4) for x in xs[:6]]
        return _sums(words, xs[6:], np.dtype(np.int32))
    pairs = [x if x.ndim == 2 else np.ascontiguousarray(x).view(ml_dtypes.bfloat16).reshape(-1, 2) for x in xs[:6]]
    return _sums([x.astype(np.float32).reshape(-1, 32, 2) for x in pairs], xs[6:], np.dtype(np.float32))


def _sums(words: list[Array], sums: tuple[Array, ...], dtype: np.dtype[Any]) -> Array:
    """Each lane has the same place of both halves of the inner positions, for two rows and one column."""
    count, _, each = words[0].shape
    left, right = np.zeros((count, 16, 8 * each), dtype), np.zeros((count, 8 * each, 8), dtype)
    for half in range(2):
        for part in range(each):
            inner = each * _QUAD + part + 4 * each * half
            left[:, _GROUP, inner], left[:, _GROUP + 8, inner] = (
                words[2 * half][..., part],
                words[2 * half + 1][..., part],
            )
            right[:, inner, _GROUP] = words[4 + half][..., part]
    product = left @ right
    two = 2 * _QUAD
    places = [(_GROUP, two), (_GROUP, two + 1), (_GROUP + 8, two), (_GROUP + 8, two + 1)]
    made = [x + product[:, row, column].reshape(-1) for x, (row, column) in zip(sums, places, strict=True)]
    return np.stack(made, 1)


def three_words(text: str, word: Array) -> Array:
    """`lop3.b32 $0, $1, B, C, TABLE;`: bit i of the table is the result where the bits of the word, B and C are those of i."""
    name, *_, second, third, table = text.rstrip(";").replace(",", "").split()
    assert name == "lop3.b32"
    words = word.view(np.uint32), np.uint32(int(second, 16)), np.uint32(int(third, 16))
    made = np.zeros_like(words[0])
    for row in (row for row in range(8) if int(table, 16) >> row & 1):
        a, b, c = (w if row >> place & 1 else ~w for w, place in zip(words, (2, 1, 0), strict=True))
        made |= a & b & c
    return made.view(word.dtype)


def signed_byte(word: Array, other: Array, selector: Array) -> Array:
    """What the instruction prmt selects: byte by byte one of eight, or its sign in all bits."""
    content = np.stack([word, other], 1).astype(np.int32).view(np.int8)
    lines, made = np.arange(len(word)), np.empty((len(word), 4), np.int8)
    for place in range(4):
        code = selector >> 4 * place & 15
        byte = content[lines, code & 7]
        made[:, place] = np.where(code & 8, byte >> 7, byte)
    return made.view(np.int32).reshape(-1)
