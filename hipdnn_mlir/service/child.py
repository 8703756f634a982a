"""Compilation in a child process: a crash under the compiler becomes an error with a reproducer, the caller lives on."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hipdnn_mlir_runtime.errors import UNMAPPED, HipdnnMlirError, PassError, error_from_dict
from hipdnn_mlir_runtime.options import options_of

from .messages import Connection
from .process import start
from .reproducer import out_of_memory, with_reproducer
from .request import Request

_log = logging.getLogger(__name__)

DEFAULT_TIMEOUT_S: float = options_of("compile")["compile_timeout_s"].default
"""Seconds after which a silent child counts as hanging."""

_DETAIL_LIMIT_CHARS = 20_000
_OUT_OF_MEMORY = ("std::bad_alloc", "LLVM ERROR: out of memory", "MemoryError", *UNMAPPED)
"""What a process prints that ends for want of memory."""
_ENDING_TIME_S = 5
"""What a child may take to end after it has closed its connection."""

Progress = Callable[[str], None]


def perform_in_child(
    request: Request, *, timeout_s: float = DEFAULT_TIMEOUT_S, on_progress: Progress | None = None
) -> dict[str, Any]:
    """Perform a request in a child process and return its result.

    Args:
        request: What is asked.
        timeout_s: Seconds without a line of progress after which the child is killed.
        on_progress: Called with a line of text as the work moves on.

    Raises:
        HipdnnMlirError: Whatever the request raised in the child, as the class it was.
        PassError: The child crashed or hung; the error names a saved reproducer.
    """
    try:
        process = start()
    except OSError as error:
        hint = "see ulimit -u and ulimit -n, or compile with --in-process"
        raise HipdnnMlirError(f"cannot start the compiler's process: {error.strerror}", hint=hint) from error
    try:
        process.connection.settimeout(timeout_s)
        reply = _exchange(Connection(process.connection), replace(request, progress=True), on_progress)
        ending = None if reply else _ending(process.popen)
    except KeyboardInterrupt:
        process.let_go()
        raise
    except TimeoutError:
        reply, ending = None, f"gave no answer within {timeout_s:g} s and was stopped"
    finally:
        text = process.end()
    if text:
        _log.debug("the child printed: %s", text)
    if reply is None and any(words in text for words in _OUT_OF_MEMORY):
        raise out_of_memory(request.where)
    if reply is None:
        failure = PassError(f"the compiler {ending}", where=request.where, detail=text[-_DETAIL_LIMIT_CHARS:])
        raise with_reproducer(failure, request)
    if "error" in reply:
        raise error_from_dict(reply["error"])
    result: dict[str, Any] = reply["result"]
    return result


def _exchange(connection: Connection, request: Request, on_progress: Progress | None) -> dict[str, Any] | None:
    """Send a request and return the reply, or None where the other end closed before it gave one."""
    try:
        connection.send(json.dumps(request.to_json()).encode())
        while (message := connection.receive()) is not None:
            reply: dict[str, Any] = json.loads(message[0])
            if "progress" not in reply:
                return reply
            _log.info("%s", reply["progress"])
            if on_progress is not None:
                on_progress(reply["progress"])
    except ConnectionError:
        _log.debug("the child ended in the middle of a message")
    return None


def _ending(process: subprocess.Popen[bytes]) -> str:
    """How a child ended that has closed its connection, in words."""
    try:
        status = process.wait(_ENDING_TIME_S)
    except subprocess.TimeoutExpired:
        return "closed its connection without a reply and was stopped"
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"exited with status {status} without a reply"
