"""The positions a kernel computes, arranged as memory is: fewer dims, the fastest last, accesses of several elements."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ...ops.strides import Dims, Strides
from .kernel import Operand

ACCESS_BYTES = 16
"""Of the widest access of one thread."""
_MAX_LANES = 8
"""Adjacent positions of one thread, but where all elements are bytes."""


@dataclass(frozen=True)
class Space:
    """Dims, outermost first, and for each linear function of positions (a tensor's offset, a position along a dim) its strides there."""

    dims: Dims
    strides: tuple[Strides, ...]

    @property
    def size(self) -> int:
        """Number of positions."""
        return prod(self.dims)


def arranged(dims: Dims, functions: Sequence[Strides], leaders: Sequence[int]) -> Space:
    """The space without dims of size 1, sorted by the strides of the leading functions, dims joined where all functions allow.

    Args:
        dims: sizes, none of them 0.
        functions: strides of each function.
        leaders: numbers of the functions whose order of memory counts, the most important first.
    """
    axes = [axis for axis, size in enumerate(dims) if size != 1]
    axes.sort(key=lambda axis: tuple(-functions[leader][axis] for leader in leaders))
    joined: list[tuple[int, list[int]]] = []
    for axis in axes:
        steps = [function[axis] for function in functions]
        if joined and all(outer == inner * dims[axis] for outer, inner in zip(joined[-1][1], steps, strict=True)):
            joined[-1] = (joined[-1][0] * dims[axis], steps)
        else:
            joined.append((dims[axis], steps))
    strides = tuple(tuple(steps[number] for _, steps in joined) for number in range(len(functions)))
    return Space(tuple(size for size, _ in joined), strides)


def vector_size(space: Space, operands: Sequence[Operand], *, divides: bool = False) -> int:
    """Adjacent positions of the last dim that one thread computes, so that an access has 16 bytes where memory allows.

    Args:
        space: of positions; its first functions are the operands' offsets.
        operands: the tensors.
        divides: whether the last dim must be a multiple of it, even where it is the only one.
    """
    if not space.dims:
        return 1
    adjacent = [(o, strides) for o, strides in zip(operands, space.strides, strict=False) if strides[-1] == 1]
    bytes_each = [operand.dtype.bytes for operand, _ in adjacent]
    wanted = min(ACCESS_BYTES // min(bytes_each, default=ACCESS_BYTES), _MAX_LANES)
    if bytes_each and max(bytes_each) == 1:
        wanted = ACCESS_BYTES
    while space.dims[-1] % wanted and (divides or len(space.dims) > 1 or space.dims[-1] < wanted):
        wanted //= 2
    while any(access_size(o, strides, wanted) < min(wanted, ACCESS_BYTES // o.dtype.bytes) for o, strides in adjacent):
        wanted //= 2  # a wave that reads single elements of many groups touches every line of memory many times
    return wanted


def access_size(operand: Operand, strides: Strides, count: int) -> int:
    """Elements of one access of an operand when a thread takes `count` adjacent positions that start at multiples of that; 0 broadcasts."""
    if not strides or strides[-1] == 0:
        return 0
    size = min(count, ACCESS_BYTES // operand.dtype.bytes) if strides[-1] == 1 else 1
    while size > 1 and (operand.alignment % (size * operand.dtype.bytes) or any(s % size for s in strides[:-1])):
        size //= 2
    return size


def is_wide(operands: Sequence[Operand], positions: int) -> bool:
    """Whether positions or offsets exceed 31 bits."""
    return max(positions, *(operand.extent for operand in operands)) >= 2**31 - 2**16
