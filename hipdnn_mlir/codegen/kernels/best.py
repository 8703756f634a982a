"""The best of what the threads of a wavefront or a block have found: a value and its position each."""

from collections.abc import Callable

from ..core.builder import KernelBuilder, Value

Element = list[Value]
"""A value and its position, i32."""
Better = Callable[[Element, Element], Element]
"""Which of two."""


def best_of_wave(b: KernelBuilder, best: Element, threads: int, wave: int, better: Better) -> Element:
    """The best of so many neighbouring threads, for all of them."""
    offset = min(threads, wave) // 2
    while offset:
        best = better(best, [b.shuffle(value, offset, wave) for value in best])
        offset //= 2
    return best


def best_of_block(b: KernelBuilder, part: Value, best: Element, wave: int, waves: int, better: Better) -> Element:
    """The best of a block's wavefronts, each of which has its own, for all threads; 16 bytes of shared memory a wavefront."""
    kept, numbers = b.shared(0), b.shared(8 * waves)
    raw = b.op("arith.extui", [best[0]], b.i8) if best[0].type == b.i1 else best[0]
    with b.when(b.compare("eq", b.at(b.mod(part, wave)), b.at(0))):
        b.store(kept, b.div(part, wave), [raw])
        b.store(numbers, b.div(part, wave), [best[1]])
    b.barrier()
    for number in range(waves):
        value = b.load(kept, number, raw.type)[0]
        value = b.op("arith.trunci", [value], b.i1) if best[0].type == b.i1 else value
        found = [value, b.load(numbers, number, b.i32)[0]]
        best = found if number == 0 else better(best, found)
    b.barrier()  # before the next round writes
    return best
