"""The compiler's process as its caller holds it; it may be started before the caller has loaded anything, so little is imported here."""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

_COMMANDS = frozenset({"compile", "explain", "verify"})
"""Of `hipdnn-mlir`, that need the process."""
_ELSEWHERE = frozenset({"--in-process", "--help", "-h"})
"""Arguments with which they do not."""
_COMPILER = "hipdnn_mlir.compiler.compile"
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
        environment: what it was started with.
    """

    def __init__(self, popen: subprocess.Popen[bytes], connection: socket.socket, printed: IO[bytes]) -> None:
        self.popen = popen
        self.connection = connection
        self.environment = dict(os.environ)
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


_AHEAD: list[Process] = []
"""The one that `start_ahead` started, until it is taken."""


def start_ahead(arguments: Sequence[str]) -> None:
    """Start the process that a command line needs, before that is read: it loads the compiler beside what reads it.

    Args:
        arguments: of `hipdnn-mlir`.
    """
    if {*arguments[:1]} & _COMMANDS and _ELSEWHERE.isdisjoint(arguments):
        with contextlib.suppress(OSError):  # whoever asks for the process says so
            _AHEAD.append(start(_COMPILER))
            atexit.register(_end_ahead)


def _end_ahead() -> None:
    """Stop the one that nobody took: an error or an interrupt came first."""
    for process in _AHEAD:
        process.end()


def take() -> Process:
    """The process that was started ahead, for whom asks first and in the environment that it was started with; else a new one.

    Raises:
        OSError: it cannot be started.
    """
    while _AHEAD:
        process = _AHEAD.pop()
        if process.environment == os.environ:
            return process
        process.end()  # the environment names extensions
    return start()


def start(*modules: str) -> Process:
    """Start a process.

    Args:
        modules: it imports before it waits.

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
                [sys.executable, "-P", "-m", "hipdnn_mlir.service.server", str(theirs.fileno()), *modules],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": path},
            )
        opened.pop_all()
    return Process(popen, ours, printed)
