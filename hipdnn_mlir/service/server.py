"""The compiler as a service: requests in, placements, programs and explanations out.

``python -P -m hipdnn_mlir.service.server FD`` answers messages (``messages``) on a socket, one at a time in order, until the other end
closes it. ``answer`` does the same for one message, for a host that has an interpreter in its own process.

A message is a UTF-8 JSON object with fields of ``Request``. A model comes as a file descriptor and as ``hipdnn_mlir.frontend.container``
describes, or ``model`` is the path of an ONNX or ``.pt2`` file. Actions:

- ``hello`` -> ``{"version", "producers", "targets"}``; quick, for nothing of the compiler is loaded yet.
- ``place`` with the descriptor of a model -> ``{"partitions": [{"nodes", "dynamic"}], "rejects": [{"op", "rule", "reason", "node"}],
  "dropped": [{"nodes", "reason"}], "contradicted": {value: dims}, "graphs", "nodes"}``. Values that are ``contradicted`` have, or may have,
  other sizes than the model declares: numbers or names, with which partitions are then compiled.
- ``compile`` with the descriptors of a model and of an output -> ``{"bytes", "steps", "copies"}``; the output holds the program file
  afterwards. Without ``shapes`` dynamic dimensions stay dynamic, or, with ``buckets`` and for a GPU, there is a program for each
  combination of those; the steps are then those of all.
- ``compile`` of a path to the path ``output`` -> ``{}``; ``explain`` of a path -> ``Explanation.to_dict()``; ``regions`` of a path ->
  the nodes of each step, with the torch dialect of its region.

A reply is ``{"result": ...}`` or ``{"error": {"kind", "message", "detail", "error", "fields"}}``: ``kind`` is the class of this package's
error, or ``defect`` where something else was raised; ``error`` and ``fields`` are ``HipdnnMlirError.to_dict()``. A request with
``progress`` gets messages ``{"progress": text}`` before its reply.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import resource
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hipdnn_mlir_runtime.atomic_file import discard_partial_files
from hipdnn_mlir_runtime.errors import PassError

from .messages import Connection, close_all
from .perform import Compiler
from .reproducer import as_package_error, with_reproducer
from .request import Request

_DETAIL_LIMIT_CHARS = 20_000
_GARBAGE = 500_000
"""Objects after which Python looks for garbage that refers to itself; by default, of 700, that takes a tenth of a compilation."""
_COMPILER = Compiler()


def answer(message: bytes, fds: Sequence[int], on_progress: Callable[[str], None] | None = None) -> bytes:
    """Perform the request in a message and return the reply; safe to call from any thread.

    Args:
        message: the message, without its length.
        fds: the file descriptors that belong to it; they stay open.
        on_progress: called with a line of text as the work moves on, if the request wants that.
    """
    request = None
    try:
        request = Request.parse(message, len(fds))
        with _heard(on_progress if request.progress else None):
            reply = {"result": _COMPILER.perform(request, fds)}
    except Exception as error:  # noqa: BLE001 - the process boundary: nothing may pass it as a traceback
        reply = {"error": _described(error, request, fds)}
    return json.dumps(reply).encode()


def perform_here(request: Request) -> dict[str, Any]:
    """Perform a request in this process and return its result; errors are those of ``child.perform_in_child``."""
    try:
        return _COMPILER.perform(request)
    except Exception as error:
        raise with_reproducer(as_package_error(error, request), request) from error


def _described(error: Exception, request: Request | None, descriptors: Sequence[int]) -> dict[str, Any]:
    known = as_package_error(error, request, descriptors)
    is_defect = isinstance(known, PassError) and known is not error
    if request is not None:
        known = with_reproducer(known, request, descriptors)
    detail = known.detail[-_DETAIL_LIMIT_CHARS:] if isinstance(known, PassError) else ""
    described = known.to_dict()  # whose name of the error is the public one
    kind = "defect" if is_defect else described["error"]
    return {"kind": kind, "message": str(known), "detail": detail, **described}


class _Forward(logging.Handler):
    """Hands the package's log records on as lines of progress."""

    def __init__(self, on_progress: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._on_progress = on_progress

    def emit(self, record: logging.LogRecord) -> None:
        self._on_progress(record.getMessage())


@contextlib.contextmanager
def _heard(on_progress: Callable[[str], None] | None) -> Iterator[None]:
    """While inside, what the package logs is heard."""
    if on_progress is None:
        yield
        return
    logger, handler = logging.getLogger("hipdnn_mlir"), _Forward(on_progress)
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _end_with(connection: socket.socket, busy: threading.Event) -> None:
    """End the process where the other end closes amid a request: no file may appear behind a caller that was killed."""
    closed = select.poll()
    closed.register(connection, select.POLLRDHUP)
    closed.poll()
    busy.wait()
    discard_partial_files()
    os._exit(1)


def serve(connection: socket.socket) -> None:
    """Answer messages until the other end closes the connection."""
    stream = Connection(connection)

    def on_progress(text: str) -> None:
        stream.send(json.dumps({"progress": text}).encode())

    busy = threading.Event()
    threading.Thread(target=_end_with, args=(connection, busy), daemon=True).start()
    with contextlib.suppress(ConnectionError):
        while (received := stream.receive()) is not None:
            message, descriptors = received
            busy.set()
            try:
                reply = answer(message, descriptors, on_progress)
            finally:
                busy.clear()
                close_all(descriptors)
            stream.send(reply)


def _limit_memory() -> None:
    """Let a model that asks for too much end in an error here, before the system ends other processes. Mapped weights do not count."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > most:
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def main() -> None:
    """Serve the socket whose file descriptor is the command line's one argument."""
    _limit_memory()
    gc.set_threshold(_GARBAGE)
    # An interrupt is meant for the host, which shares the terminal; its end closes the socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(format="hipdnn-mlir: %(message)s")
    logging.getLogger().handlers[0].setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        serve(connection)


if __name__ == "__main__":
    main()
