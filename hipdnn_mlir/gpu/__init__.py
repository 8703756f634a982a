"""Code for GPUs: kernels and residual operation graphs as PTX or AMDGPU objects, through MLIR's gpu dialect and llvmlite's LLVM."""

from .arch import ARCHITECTURES, Architecture, find_architecture
from .generate import generate, generate_graph
from .kernel import GpuKernel
from .link import link_code_object

__all__ = [
    "ARCHITECTURES",
    "Architecture",
    "GpuKernel",
    "find_architecture",
    "generate",
    "generate_graph",
    "link_code_object",
]
