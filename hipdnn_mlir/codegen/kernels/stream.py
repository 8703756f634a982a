"""Memory read in chunks, each one before the one in front of it is used."""

from collections.abc import Callable, Sequence

from ..core.builder import KernelBuilder, Value

Load = Callable[[Value], list[Value]]
"""What memory holds of the chunk that begins at a step."""
Use = Callable[[Value, Sequence[Value], Sequence[Value]], list[Value]]
"""Sums with those of a chunk: where it begins, what was loaded, the sums so far."""


def stream(
    b: KernelBuilder, load: Load, use: Use, first: list[Value], sums: list[Value], chunk: int, whole: int
) -> list[Value]:
    """The sums of all chunks from step 0 to `whole`, a multiple of `chunk`; `first` is what was loaded of the first one."""
    count = len(sums)

    def next_one(start: Value, carried: list[Value]) -> list[Value]:
        ahead = load(start)
        return [*use(b.add(start, -chunk), carried[count:], carried[:count]), *ahead]

    done = [*sums, *first]
    if whole > chunk:
        done = b.loop(chunk, whole, chunk, done, next_one)
    return use(whole - chunk, done[count:], done[:count])
