"""Code of a program's kernels, as program files have it."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch_mlir import ir

from hipdnn_mlir_runtime.errors import Reject, UnsupportedError

from ..ir.view import node_name
from . import Architecture, GpuKernel, find_architecture, link_code_object


@dataclass(frozen=True)
class Generated:
    """Code of a kernel.

    Attributes:
        launches: as program files have them, in order.
        overwrites: tensors of the kernel in whose memory its out may lie.
    """

    launches: list[dict[str, Any]]
    overwrites: tuple[int, ...]


def generated_code(
    write: Callable[[Architecture], GpuKernel | Reject], architecture: str, order: Sequence[int], op: ir.OpView
) -> Generated:
    """Compile a kernel.

    Args:
        write: compiles it for an architecture.
        architecture: name of the GPU's.
        order: where in the kernel's tensors each one stands that the code is written for.
        op: what is compiled, for messages.

    Raises:
        UnsupportedError: there is no code for it.
    """
    made = write(find_architecture(architecture))
    if isinstance(made, Reject):
        raise UnsupportedError([Reject(made.op, made.rule, made.reason, node_name(op))], target=architecture)
    launches = [_code(launch, order) for launch in (*made.preceded_by, made)]
    return Generated(launches, tuple(order[number] for number in made.overwrites))


def _code(launch: GpuKernel, order: Sequence[int]) -> dict[str, Any]:
    if isinstance(launch.code, str):
        encoding, image = "text", launch.code
    else:
        encoding, image = "base64", base64.b64encode(link_code_object(launch.code)).decode()
    code: dict[str, Any] = {
        "function": launch.name,
        "grid": launch.grid,
        "block": launch.block,
        "arguments": [order[number] for number in launch.arguments],
        "encoding": encoding,
        "image": image,
    }
    if launch.asks_for_shared:
        code["shared_bytes"] = launch.shared_bytes
    return code | ({"waits": True} if find_architecture(launch.architecture).waits_in_kernels else {})
