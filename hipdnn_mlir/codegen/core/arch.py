"""The GPU architectures that kernels are compiled for: one row each."""

from dataclasses import dataclass
from typing import Literal

from hipdnn_mlir_runtime.errors import ModelError

AMD_TRIPLE = "amdgcn-amd-amdhsa"
NVIDIA_TRIPLE = "nvptx64-nvidia-cuda"


@dataclass(frozen=True)
class Architecture:
    """One GPU architecture.

    Attributes:
        name: as in `--target` and as LLVM calls the processor.
        vendor: whose it is.
        triple: LLVM's target triple.
        wave_size: threads that run in lockstep and can shuffle.
        code: what a kernel is: PTX text, or an ELF object that a linker makes a code object of.
        max_threads: of one block.
        shared_bytes: shared memory that any block may have.
        asked_shared_bytes: shared memory that a block may have whose launch asks for it.
        units: multiprocessors or compute units of a typical part: how many blocks it takes to fill one.
        waits_in_kernels: a kernel can be launched while the one in front runs, and has an instruction that waits for that one.
        rounds_to_float8: it has an instruction that makes floats of 8 bits of f32.
        cluster: how many blocks may be a cluster, which run at the same time and wait for each other.
    """

    name: str
    vendor: Literal["amd", "nvidia"]
    wave_size: int
    units: int

    max_threads: int = 1024
    shared_bytes: int = 48 * 1024
    asked_shared_bytes: int = 48 * 1024
    waits_in_kernels: bool = False
    rounds_to_float8: bool = False
    cluster: int = 1

    @property
    def triple(self) -> str:
        """LLVM's target triple."""
        return AMD_TRIPLE if self.vendor == "amd" else NVIDIA_TRIPLE

    @property
    def code(self) -> Literal["ptx", "object"]:
        """Form of the compiled code."""
        return "object" if self.vendor == "amd" else "ptx"


ARCHITECTURES = {
    row.name: row
    for row in (
        Architecture("gfx90a", "amd", 64, 104),
        Architecture("gfx942", "amd", 64, 304),
        Architecture("gfx950", "amd", 64, 256),
        Architecture("gfx1100", "amd", 32, 96),
        Architecture("gfx1151", "amd", 32, 40),
        Architecture("gfx1201", "amd", 32, 64),
        Architecture(
            "gfx1250", "amd", 32, 256
        ),  # units as of gfx950: those of its parts were not published when this was written
        Architecture("sm_80", "nvidia", 32, 108),
        Architecture(
            "sm_90",
            "nvidia",
            32,
            132,
            asked_shared_bytes=227 * 1024,
            waits_in_kernels=True,
            rounds_to_float8=True,
            cluster=8,
        ),
    )
}


def find_architecture(name: str) -> Architecture:
    """The architecture of a name; raises ModelError listing the known ones."""
    if name not in ARCHITECTURES:
        raise ModelError(f"unknown GPU architecture {name!r}: expected one of {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[name]
