"""What a generator decides about a launch, and the kernel that is compiled from it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from ...ops.spec import Refusal
from .arch import Architecture
from .builder import KernelBuilder, build_module
from .kernel import GpuKernel
from .lower import WAVES, compile_module


@dataclass(frozen=True)
class Launch:
    """One launch before it is compiled.

    Attributes:
        write: writes the kernel's body; its arguments are the tensors' pointers.
        blocks, threads: of the grid, of a block; both one-dimensional. No blocks: there is nothing to launch.
        shared_bytes: of a block's shared memory; more than the architecture's `shared_bytes` is asked for at the launch.
        wide: whether positions need 64 bits.
        overwrites: as of a GpuKernel.
        resident: how many blocks one of NVIDIA's multiprocessors must have room for, which limits registers; None: as `_limits` says.
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
_CDNA_WAVE, _SIMDS = 64, 4
"""Threads of a wave of CDNA, and how many SIMDs a compute unit has there."""
EMPTY = Launch(lambda _: None, 0, 1)
"""Of a kernel whose outs have no elements."""


def check_grid(launch: Launch, architecture: Architecture) -> None:
    """Raise Refusal for a grid that is too large: HIP counts its threads by 32 bits, CUDA its blocks by 31."""
    is_amd = architecture.vendor == "amd"
    count, most = (launch.blocks * launch.threads, 2**32 - 1) if is_amd else (launch.blocks, 2**31 - 1)
    if count > most:
        raise Refusal("size", f"one launch has {count} {'threads' if is_amd else 'blocks'}, at most {most}")


def _limits(launch: Launch, architecture: Architecture) -> list[str]:
    """Attributes of the kernel's function: its cluster, and how many registers a thread may have.

    Compilers do not know the grid. They keep registers free for blocks that never come, and put off loads for that. Where the grid is small
    they are told how many blocks a multiprocessor has.
    """
    each = ceil(launch.blocks / architecture.units)
    is_small = each == 1 or 0 < each * launch.threads <= _MOST_THREADS
    if architecture.vendor == "amd":
        waves = ceil(each * launch.threads / (architecture.wave_size * _SIMDS))
        # RDNA's loads come in the order of before, and some kernels spill.
        return [f'{WAVES} = "{waves},{waves}"'] if is_small and architecture.wave_size == _CDNA_WAVE else []
    resident = each if launch.resident is None and is_small else launch.resident
    found = [] if resident is None else [f"nvvm.minctasm = {resident} : i32"]
    return found + [f"nvvm.cluster_dim = array<i32: {launch.cluster}, 1, 1>"] * (launch.cluster > 1)


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
        architecture.rounds_to_float8,
        _limits(launch, architecture),
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
