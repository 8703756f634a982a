"""A compiled kernel, and how its tensors look to the generators."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from hipdnn_mlir_runtime.dtypes import BY_NAME, DType

from ...ops.strides import Dims, Strides, extent


@dataclass(frozen=True)
class Operand:
    """One tensor of a kernel.

    Attributes:
        role: whether it is read or written.
        dims, strides: strides in elements; 0 broadcasts.
        alignment: bytes that its address is a multiple of.
        is_settled: no kernel of the program writes it.
    """

    role: Literal["in", "out"]
    dtype: DType
    dims: Dims
    strides: Strides
    alignment: int = 16
    is_settled: bool = False

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.dims)

    @property
    def extent(self) -> int:
        """Elements of memory from the first to one past the last."""
        return extent(self.dims, self.strides)


@dataclass(frozen=True)
class GpuKernel:
    """Code for one launch.

    Attributes:
        name: symbol of the function in the code.
        code: PTX text, or an AMDGPU object (ELF) that is still to be linked.
        grid: blocks in x, y, z; (0, 1, 1) where there is nothing to do and nothing may be launched.
        block: threads of a block in x, y, z.
        shared_bytes: shared memory of a block.
        asks_for_shared: the code does not declare that shared memory, since it is more than any block may have: a launch asks for it.
        arguments: per argument the number of the tensor (of the description, or of `Graph.operands()`) whose device pointer it is.
        preceded_by: launches that come first, on the same stream: of a scatter the copy of the data, which is left out where the data
            lies in the out's memory.
        overwrites: numbers of ins in whose memory the only out may lie: what a thread reads there and uses is written by no other
            thread, and by itself only afterwards.
    """

    name: str
    architecture: str
    code: str | bytes
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[int, ...]
    preceded_by: tuple["GpuKernel", ...] = ()
    overwrites: tuple[int, ...] = ()
    asks_for_shared: bool = False


def operands_of(
    tensors: Sequence[Mapping[str, Any]], alignments: Sequence[int] | None = None, settled: Collection[int] = ()
) -> list[Operand]:
    """The tensors of a kernel's description (docs/program-format.md).

    Args:
        tensors: JSON objects with role, dtype, dims, strides.
        alignments: bytes that each tensor's address is a multiple of; 16 everywhere where nothing is said.
        settled: numbers of those that no kernel of the program writes.
    """
    return [
        Operand(
            t["role"],
            BY_NAME[t["dtype"]],
            tuple(t["dims"]),
            tuple(t["strides"]),
            alignments[i] if alignments else 16,
            i in settled,
        )
        for i, t in enumerate(tensors)
    ]
