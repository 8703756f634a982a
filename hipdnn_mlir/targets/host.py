"""What the host's library takes: it is a part of this package, so it is asked, graph by graph, and no table repeats it."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ..abi import Descriptor as D
from ..errors import DeviceError, ProgramError
from ..ops.graph import Graph
from ..ops.kernels import Kernel

if TYPE_CHECKING:
    from .. import _runtime

CUSTOM_OP_ENGINE = "HOST_CUSTOM_OP_ENGINE"
_CUSTOM_OP = [D.OPERATION_CUSTOM_OP_DESCRIPTOR_EXT]
_MOST_ANSWERS = 16384


@dataclass(frozen=True)
class Answer:
    """Names of the engines that take a graph, the preferred one first; each engine's reason against it where none does."""

    engines: tuple[str, ...]
    reason: str = ""


def open_library() -> "_runtime.Device":
    """The host's library.

    Raises:
        DeviceError: it is not part of this installation.
    """
    # Whoever asks for the names of targets need not wait for the runtime.
    from ..session.devices import open_device
    from ..session.options import device_options

    try:
        return open_device(device_options({}, "host", is_tf32=False))
    except DeviceError as error:
        hint = "or compile for a GPU with --target"
        raise DeviceError(f"compiling for target 'host' asks its library: {error}", hint=hint) from error


def ask(graph: Graph) -> Answer:
    """Which engines of the host's library take a graph.

    A custom operation is taken as it is: the process that runs the program registers it, this one need not.

    Raises:
        DeviceError: as for `open_library`.
    """
    if [node.type for node in graph.nodes] == _CUSTOM_OP:
        return Answer((CUSTOM_OP_ENGINE,))
    return _answer(_compact({"name": "graph", "operands": graph.operands(), "descriptors": graph.descriptors()}))


def refuses_kernel(kernel: Kernel) -> str | None:
    """The host library's reason against a kernel, or None where it takes it.

    Raises:
        DeviceError: as for `open_library`.
    """
    return _kernel_refusal(_compact(kernel.description())) or None


@lru_cache(_MOST_ANSWERS)
def _answer(executable: str) -> Answer:
    try:
        names, words = open_library().engines_for(executable)
    except (
        ProgramError
    ) as error:  # no graph that a program could hold, such as one of more bytes than there are addresses
        return Answer((), str(error))
    return Answer(tuple(names), _in_one_line(words))


@lru_cache(_MOST_ANSWERS)
def _kernel_refusal(image: str) -> str:
    return open_library().refuses_kernel(image)


def _in_one_line(words: str) -> str:
    """The engines' reasons, which follow a heading, or whatever else the library says."""
    heading, *reasons = words.splitlines() or [""]
    return "; ".join(map(str.strip, reasons)) or heading


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
