"""Lines along one dim of a tensor, shared among threads: those of a wave or block where a line lies along memory, else one thread each."""

from collections.abc import Sequence
from dataclasses import dataclass

from .arch import Architecture
from .builder import KernelBuilder, Value
from .kernel import Operand
from .space import Space, arranged

_BLOCK = 256
_LONG = 4096
"""Elements of a line from which a whole block shares it."""


@dataclass(frozen=True)
class LineThread:
    """What one thread does: its line's coordinates, its number among those that share the line, whether it writes the line's results."""

    line: list[Value]
    part: Value
    inside: Value
    is_first: Value


@dataclass(frozen=True)
class Lines:
    """How threads share lines.

    Attributes:
        space: of lines; functions are offsets of their starts in the operands.
        sharing: threads of one line.
        beside: lines of one block.
        wave: threads of a wave.
    """

    space: Space
    sharing: int
    beside: int
    wave: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.sharing * self.beside

    def thread(self, b: KernelBuilder) -> LineThread:
        """This thread's line; past the last one, the last."""
        thread = b.thread()
        line = b.add(b.mul(b.block(), self.beside), b.div(thread, self.sharing))
        part = b.mod(thread, self.sharing)
        inside = b.less(line, self.space.size)
        at = b.coordinates(b.least(line, self.space.size - 1), self.space.dims)
        is_first = b.same("arith.andi", inside, b.compare("eq", b.at(part), b.at(0)))
        return LineThread(at, part, inside, is_first)


def lines_of(operands: Sequence[Operand], axis: int, architecture: Architecture, *, block: bool = True) -> Lines:
    """Lines along `axis` of the first operand; the others have the same lines. Unless `block`, at most a wave shares one."""
    x = operands[0]
    others = [dim for dim in range(len(x.dims)) if dim != axis]
    functions = [tuple(operand.strides[dim] for dim in others) for operand in operands]
    space = arranged(tuple(x.dims[dim] for dim in others), functions, [0])
    wave = architecture.wave_size
    is_across = bool(space.dims) and space.strides[0][-1] == 1 and x.strides[axis] != 1
    if x.dims[axis] < 16 or (is_across and space.size >= 32 * architecture.units):
        return Lines(space, 1, _BLOCK if space.size >= _BLOCK else wave, wave)
    if block and x.dims[axis] >= _LONG:
        return Lines(space, _BLOCK, 1, wave)
    return Lines(space, wave, max(1, min(_BLOCK // wave, space.size)), wave)
