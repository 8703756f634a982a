"""The compiler's process as its caller holds it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO

_TIDYING_TIME_S = 1
"""What a process may take to delete its files after an interrupt; one deep in native code does not get to it."""


class Process:
    """A process that waits for requests; it ends when the connection does.

    Args:
        popen: the process.
        connection: this end of the connection (`messages`).
        printed: what it prints.

    Attributes:
        popen: as given.
        connection: as given.
    """

    def __init__(self, popen: subprocess.Popen[bytes], connection: socket.socket, printed: IO[bytes]) -> None:
        self.popen = popen
        self.connection = connection
        self._printed = printed

    def let_go(self) -> None:
        """Close the connection, and wait until it has deleted what it has half written, and ended."""
        self.connection.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(_TIDYING_TIME_S)

    def end(self) -> str:
        """Stop it, and return what it printed."""
        with self.connection, self._printed:
            self.popen.kill()
            self.popen.wait()
            self._printed.seek(0)
            return self._printed.read().decode(errors="replace")


def start() -> Process:
    """Start a process.

    Raises:
        OSError: it cannot be started.
    """
    # The child must import the same package as its parent, installed or not, and nothing from the working directory.
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    with contextlib.ExitStack() as opened:
        printed = opened.enter_context(os.fdopen(os.memfd_create("hipdnn-mlir"), "w+b"))
        ours, theirs = socket.socketpair()
        opened.enter_context(ours)
        with theirs:
            popen = subprocess.Popen(
                [sys.executable, "-P", "-m", "hipdnn_mlir.service.server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": path},
            )
        opened.pop_all()
    return Process(popen, ours, printed)
