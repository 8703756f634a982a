"""Code for GPUs: kernels and residual operation graphs as PTX or AMDGPU objects, through MLIR's gpu dialect and llvmlite's LLVM.

Loading it takes a tenth of a small model's compilation, so passes, which run for the CPU too, import it where they generate code.
"""

from .core.arch import ARCHITECTURES, Architecture, find_architecture
from .core.kernel import GpuKernel
from .core.link import link_code_object
from .core.tools import missing_tools
from .generate import READS_EARLY, generate, generate_graph

__all__ = [
    "ARCHITECTURES",
    "READS_EARLY",
    "Architecture",
    "GpuKernel",
    "find_architecture",
    "generate",
    "generate_graph",
    "link_code_object",
    "missing_tools",
]
