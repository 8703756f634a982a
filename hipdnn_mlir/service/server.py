"""The compiler as a service for hosts that are not Python: requests in, placements and programs out.

``python -P -m hipdnn_mlir.service.server FD`` answers messages on a socket, one at a time in order, until the other end closes it.
``answer`` does the same for one message, for a host that has an interpreter in its own process.

A message is a UTF-8 JSON object; on the socket (AF_UNIX, SOCK_STREAM) its length goes first, 4 bytes little-endian, and file descriptors
travel with its first bytes (SCM_RIGHTS). Requests, with the descriptors they bring:

- ``{"action": "hello"}`` -> ``{"version", "producers", "targets"}``; quick, for nothing of the compiler is loaded yet.
- ``{"action": "place", "target", "precision", "placement", "dynamic_fallback", "buckets"}`` and a model -> ``{"partitions": [{"nodes",
  "dynamic"}], "rejects": [{"op", "rule", "reason", "node"}], "dropped": [{"nodes", "reason"}], "contradicted": {value: dims}, "graphs",
  "nodes"}``. Values that are ``contradicted`` have, or may have, other sizes than the model declares: numbers or names, with which parts
  are then compiled.
- ``{"action": "compile", "target", "precision", "name", "shapes", "buckets", "dump_ir"}`` and a model, an output -> ``{"bytes", "steps",
  "copies"}``; the output holds the program file afterwards. ``shapes`` (input -> dims), ``buckets`` (dynamic dimension -> sizes) and
  ``dump_ir`` (a folder) may be missing; without ``shapes`` dynamic dimensions stay dynamic, or, with ``buckets`` and for a GPU, there is a
  program for each combination of those; the steps are then those of all.

Models come as ``hipdnn_mlir.frontend.container`` describes. A reply is ``{"result": ...}`` or ``{"error": {"kind", "message"}}``: kind
is the class of this package's error, or ``defect`` where something else was raised; that and ``PassError`` bring ``detail`` and
``reproducer`` too.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..errors import HipdnnMlirError, PassError
from ..precision import UNCHANGED
from .child import bucket_options, precision_options, shape_options
from .reproducer import COPY_LIMIT_BYTES, MODEL, Reproducer, as_package_error

if TYPE_CHECKING:
    import onnx

    from ..compiler.program import Lowered, Program
    from ..ir.imported import Weights
    from .remembered import Remembered

_log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 64 << 20
MAX_DESCRIPTORS = 8
_LENGTH_BYTES = 4
_DESCRIPTORS = {"hello": 0, "place": 1, "compile": 2}
_DETAIL_LIMIT_CHARS = 20_000


@dataclass(frozen=True)
class Request:
    """What is asked for; fields as the module describes them."""

    action: str
    target: str = "host"
    precision: str = UNCHANGED
    placement: str = "profitable"
    dynamic_fallback: str = "compile"
    name: str = "model"
    shapes: dict[str, list[int]] = field(default_factory=dict)
    buckets: dict[str, list[int]] = field(default_factory=dict)
    dump_ir: str | None = None

    @classmethod
    def parse(cls, message: bytes, descriptors: int) -> Request:
        """Return the request in a message.

        Raises:
            ValueError: the message is no request, or brings another number of descriptors than it needs.
        """
        data = json.loads(message)
        if not isinstance(data, dict) or data.get("action") not in _DESCRIPTORS:
            raise ValueError(f"a request has an action out of {', '.join(_DESCRIPTORS)}")
        unknown = sorted(set(data) - set(cls.__dataclass_fields__))
        if unknown:
            raise ValueError(f"a request has no field {unknown[0]!r}")
        if descriptors != _DESCRIPTORS[data["action"]]:
            raise ValueError(
                f"{data['action']} takes {_DESCRIPTORS[data['action']]} file descriptors, {descriptors} came along"
            )
        return cls(**data)

    @property
    def options(self) -> str:
        """What a placement and its compilations have to agree in."""
        return f"{self.target} {self.precision}"

    def command(self) -> list[str]:
        """Return the command line that does the same, or the most of it, to a model in a file."""
        command = ["hipdnn-mlir", "compile" if self.action == "compile" else "explain", MODEL, "--in-process"]
        command += ["--target", self.target]
        command += precision_options(self.precision) + shape_options(self.shapes) + bucket_options(self.buckets)
        return [*command, "-o", "out.hipdnn"] if self.action == "compile" else command


class _Compiler:
    """Performs requests one at a time, and remembers between a placement and its compilations what it compiled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._remembered: Remembered | None = None

    def perform(self, request: Request, descriptors: list[int]) -> dict[str, Any]:
        """Return the result of a request."""
        if request.action == "hello":
            return _hello()
        with self._lock:
            return (
                self._place(request, *descriptors)
                if request.action == "place"
                else self._compile(request, *descriptors)
            )

    @property
    def _memory(self) -> Remembered:
        from .remembered import Remembered

        self._remembered = self._remembered or Remembered()
        return self._remembered

    def _place(self, request: Request, model: int) -> dict[str, Any]:
        from ..frontend import container
        from ..placement import place

        proto = container.read_model(model)
        placement = place(
            proto,
            target=request.target,
            precision=request.precision,
            mode=request.placement,
            dynamic_fallback=request.dynamic_fallback,
            buckets=request.buckets,
        )
        for partition in placement.partitions:
            if partition.is_whole:
                self._memory.add(partition.model, request.options, partition.lowered)
        return {
            "partitions": [{"nodes": part.nodes, "dynamic": part.is_dynamic} for part in placement.partitions],
            "rejects": [asdict(reject) for reject in placement.rejects],
            "dropped": [{"nodes": nodes, "reason": reason} for nodes, reason in placement.dropped],
            "contradicted": placement.contradicted,
            "graphs": placement.graphs,
            "nodes": placement.nodes,
        }

    def _compile(self, request: Request, model: int, output: int) -> dict[str, Any]:
        from ..frontend import container
        from ..program.file import write_to

        proto = container.read_model(model)
        weights = container.map_weights(model, proto)
        program = self._instances(request, proto, weights)
        if program is None:
            program = _named(request, proto, self._lowered(request, proto)).with_weights(weights)
        with os.fdopen(output, "wb", closefd=False) as file:
            file.seek(0)
            file.truncate()
            write_to(file, program.model, program.weights)
            written = file.tell()
        models = [instance.program for instance in program.model.instances] or [program.model]
        return {
            "bytes": written,
            "steps": sum(len(model.steps) for model in models),
            "copies": sum(model.copies for model in models),
        }

    def _instances(self, request: Request, proto: onnx.ModelProto, weights: Weights) -> Program | None:
        """The program for all combinations of buckets, where those are asked for and the model and the target need them."""
        from ..compiler.compile import has_code
        from ..compiler.instances import compile_instances
        from ..frontend.sizes.input_sizes import input_sizes
        from ..placement.plans import compiled_here

        if not request.buckets or request.shapes or not has_code(request.target):
            return None
        symbols = input_sizes(proto, {}, request.name).table.symbols
        if not symbols:
            return None
        program = compiled_here(
            lambda refused, previous: compile_instances(
                proto,
                target=request.target,
                precision=request.precision,
                buckets={name: sizes for name, sizes in request.buckets.items() if name in symbols},
                previous=previous,
                refused=refused,
                dump_ir=request.dump_ir,
                where=request.name,
                external=weights,
            )
        )
        program.model.model["name"] = request.name
        return program

    def _lowered(self, request: Request, proto: onnx.ModelProto) -> Lowered:
        """The model compiled up to its weights, from memory where its placement left it there."""
        from ..compiler.lower import lower
        from ..frontend.container import stand_ins
        from ..frontend.prepare import with_shapes
        from ..frontend.shape_inference import static_dims
        from ..placement.plans import lowered_here

        declared = {value.name: static_dims(value) for value in proto.graph.input}
        shapes = {n: tuple(dims) for n, dims in request.shapes.items() if declared.get(n) != tuple(dims)}
        if shapes:  # of one run: whatever the model calls them, each dim has its own
            proto = with_shapes(proto, shapes)
        found = None if shapes or request.dump_ir else self._memory.find(proto, request.options)
        return found or lowered_here(
            lambda refused: lower(
                proto,
                target=request.target,
                precision=request.precision,
                refused=refused,
                dump_ir=request.dump_ir,
                where=request.name,
                external=stand_ins(proto),
            )
        )


_COMPILER = _Compiler()


def answer(request: bytes, fds: list[int]) -> bytes:
    """Perform the request in a message and return the reply; safe to call from any thread.

    Args:
        request: the message, without its length.
        fds: the file descriptors that belong to it; they stay open.
    """
    parsed = None
    try:
        parsed = Request.parse(request, len(fds))
        reply = {"result": _COMPILER.perform(parsed, fds)}
    except Exception as error:  # noqa: BLE001 - the process boundary: nothing may pass it as a traceback
        reply = {"error": _error(error, parsed, fds)}
    return json.dumps(reply).encode()


def _hello() -> dict[str, Any]:
    from ..targets.target import TARGETS
    from ..versions import producers

    versions = producers()
    return {"version": versions["hipdnn_mlir"], "producers": versions, "targets": list(TARGETS)}


def _named(request: Request, proto: onnx.ModelProto, lowered: Lowered) -> Lowered:
    """The compiled model under the request's name, its inputs and outputs in the model's order."""
    program = lowered.model
    order = {value.name: index for index, value in enumerate((*proto.graph.input, *proto.graph.output))}
    model = replace(
        program,
        model={**program.model, "name": request.name},
        inputs=sorted(program.inputs, key=lambda port: order[port.name]),
        outputs=sorted(program.outputs, key=lambda port: order[port.name]),
    )
    return replace(lowered, model=model)


def _error(error: Exception, request: Request | None, descriptors: list[int]) -> dict[str, Any]:
    """The dict form of whatever was raised; a defect leaves a reproducer behind."""
    known = as_package_error(error)
    kind = type(known).__name__ if isinstance(error, (HipdnnMlirError, OSError)) else "defect"
    if not isinstance(known, PassError):
        return {"kind": kind, "message": str(known)}
    if request is not None and known.reproducer is None:
        known = known.with_reproducer(_save(request, known, descriptors))
    return {
        "kind": kind,
        "message": str(known),
        "detail": known.detail[-_DETAIL_LIMIT_CHARS:],
        "reproducer": None if known.reproducer is None else str(known.reproducer),
    }


def _save(request: Request, error: PassError, descriptors: list[int]) -> Any:
    """Save what is needed to repeat a failure: the model with its weights beside it, where they are not too large."""
    reproducer = Reproducer()
    reproducer.describe(asdict(request), request.command(), error)
    if descriptors:
        with contextlib.suppress(OSError, HipdnnMlirError):
            from ..frontend import container

            container.save(descriptors[0], reproducer.directory / MODEL, COPY_LIMIT_BYTES)
    return reproducer.directory


class _Connection:
    """Messages over a stream socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._descriptors: list[int] = []

    def receive(self) -> tuple[bytes, list[int]] | None:
        """Return the next message and its file descriptors, or None where the other end has closed.

        Raises:
            ValueError: the message is too long.
        """
        self._descriptors = []
        head = self._read(_LENGTH_BYTES)
        length = int.from_bytes(head or b"", "little")
        if length > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message of {length} bytes: at most {MAX_MESSAGE_BYTES}")
        body = self._read(length) if head is not None else None
        if body is None:
            _close(self._descriptors)
            return None
        return body, self._descriptors

    def send(self, message: bytes) -> None:
        """Send one message."""
        self._socket.sendall(len(message).to_bytes(_LENGTH_BYTES, "little") + message)

    def _read(self, count: int) -> bytes | None:
        """Exactly `count` bytes; descriptors that come along are kept. None at the end of the stream."""
        data = b""
        while len(data) < count:
            part, found, _, _ = socket.recv_fds(
                self._socket, count - len(data), MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
            )
            self._descriptors += found
            if not part:
                return None
            data += part
        return data


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def serve(connection: socket.socket) -> None:
    """Answer messages until the other end closes the connection."""
    stream = _Connection(connection)
    with contextlib.suppress(ConnectionError):
        while (message := stream.receive()) is not None:
            request, descriptors = message
            try:
                reply = answer(request, descriptors)
            finally:
                _close(descriptors)
            stream.send(reply)


def main() -> None:
    """Serve the socket whose file descriptor is the command line's one argument."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # meant for the host, which shares the terminal; its end closes the socket
    logging.basicConfig(level=logging.WARNING, format="hipdnn-mlir: %(message)s")
    logging.captureWarnings(capture=True)
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        serve(connection)


if __name__ == "__main__":
    main()
