"""A description of a kernel, or a hipDNN operation graph, -> code for a GPU."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import Reject
from ..ops.spec import Refusal
from .arch import Architecture
from .assemble import EMPTY, Launch, assembled
from .kernel import GpuKernel, Operand, operands_of
from .map import map_launch
from .program import map_program

Attributes = Mapping[str, Any]
Generator = Callable[[Sequence[Operand], Attributes, Architecture], Launch]


def _map(operands: Sequence[Operand], attributes: Attributes, architecture: Architecture) -> Launch:
    return map_launch(map_program(operands, attributes), architecture)


GENERATORS: dict[str, Generator] = {"map": _map}
"""Functions of docs/host-library.md that have code for GPUs."""


def generate(
    description: Mapping[str, Any], architecture: Architecture, alignments: Sequence[int] | None = None
) -> GpuKernel | Reject:
    """Compile a kernel.

    Args:
        description: function, tensors and attributes, as in a program file (`ops.kernels.Kernel.description`).
        architecture: of the GPU.
        alignments: bytes that each tensor's address is a multiple of, at least its element's size; 16 where nothing is said.

    Returns:
        The kernel, or why there is none.

    Raises:
        ModelError: llvmlite is not installed.
        PassError: code that should compile does not.
    """
    try:
        launch = launch_of(description, architecture, alignments)
    except Refusal as refusal:
        return Reject(description["function"], refusal.rule, refusal.reason)
    digest = hashlib.sha256(json.dumps([description, alignments], sort_keys=True).encode()).hexdigest()[:16]
    return assembled(launch, f"k_{digest}", range(len(description["tensors"])), architecture)


def launch_of(
    description: Mapping[str, Any], architecture: Architecture, alignments: Sequence[int] | None = None
) -> Launch:
    """The launch of a kernel, not compiled yet; raises Refusal."""
    operands = operands_of(description["tensors"], alignments)
    if description["function"] not in GENERATORS:
        raise Refusal("kernel", f"no code for {description['function']} on GPUs")
    if all(operand.elements == 0 for operand in operands if operand.role == "out"):
        return EMPTY
    return GENERATORS[description["function"]](operands, description["attributes"], architecture)
