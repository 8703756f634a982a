"""What a generator decides about a launch, and the kernel that is compiled from it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from ...ops.spec import Refusal
from .arch import Architecture
from .builder import KernelBuilder, build_module
from .kernel import GpuKernel
from .lower import compile_module


@dataclass(frozen=True)
class Launch:
    """One launch before it is compiled.

    Attributes:
        write: writes the kernel's body; its arguments are the tensors' pointers.
        blocks, threads: of the grid, of a block; both one-dimensional. No blocks: there is nothing to launch.
        shared_bytes: of a block's shared memory; more than the architecture's `shared_bytes` is asked for at the launch.
        wide: whether positions need 64 bits.
        overwrites: as of a GpuKernel.
        resident: how many blocks one of NVIDIA's multiprocessors must have room for, which limits registers; None where that is open.
        cluster: how many neighbouring blocks are a cluster.
    """

    write: Callable[[KernelBuilder], None]
    blocks: int
    threads: int
    shared_bytes: int = 0
    wide: bool = False
    overwrites: tuple[int, ...] = ()
    resident: int | None = None
    cluster: int = 1


_MOST_THREADS = 512
"""Of a multiprocessor, where each may have 128 registers."""
EMPTY = Launch(lambda _: None, 0, 1)
"""Of a kernel whose outs have no elements."""


def check_grid(launch: Launch, architecture: Architecture) -> None:
    """Raise Refusal for a grid that is too large: HIP counts its threads by 32 bits, CUDA its blocks by 31."""
    is_amd = architecture.vendor == "amd"
    count, most = (launch.blocks * launch.threads, 2**32 - 1) if is_amd else (launch.blocks, 2**31 - 1)
    if count > most:
        raise Refusal("size", f"one launch has {count} {'threads' if is_amd else 'blocks'}, at most {most}")


def _resident(launch: Launch, architecture: Architecture) -> int | None:
    """For how many blocks a multiprocessor has room: as the launch says, else for all of a small grid.

    The assembler of PTX does not know the grid. It keeps registers free for blocks that never come, and puts off loads for that.
    """
    each = ceil(launch.blocks / architecture.units)
    is_small = each == 1 or 0 < each * launch.threads <= _MOST_THREADS
    return each if launch.resident is None and architecture.vendor == "nvidia" and is_small else launch.resident


def module_of(launch: Launch, name: str, pointers: int, architecture: Architecture) -> Any:
    """The MLIR module of a launch."""
    return build_module(
        name,
        pointers,
        launch.threads,
        launch.shared_bytes,
        launch.shared_bytes > architecture.shared_bytes,
        launch.wide,
        launch.write,
        _resident(launch, architecture),
        architecture.rounds_to_float8,
        launch.cluster,
    )


def assembled(launch: Launch, name: str, arguments: Sequence[int], architecture: Architecture) -> GpuKernel:
    """Compile a launch."""
    code = compile_module(module_of(launch, name, len(arguments), architecture), architecture)
    grid, block = (launch.blocks, 1, 1), (launch.threads, 1, 1)
    overwrites = tuple(arguments[number] for number in launch.overwrites)
    return GpuKernel(
        name,
        architecture.name,
        code,
        grid,
        block,
        launch.shared_bytes,
        tuple(arguments),
        overwrites=overwrites,
        asks_for_shared=launch.shared_bytes > architecture.shared_bytes,
    )
