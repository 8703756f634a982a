"""The command `serve` in a process of its own, as a user runs it."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_START_S, _STOP_S = 900, 300


@dataclass(frozen=True)
class Running:
    """A server that runs."""

    process: int
    http: str
    grpc: str
    metrics: str

    def replicas(self) -> list[int]:
        """Process ids of its replicas."""
        shown = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
        rows = [line.split(maxsplit=2) for line in shown.splitlines()]
        parents = {int(pid): int(parent) for pid, parent, _ in rows}
        found = [int(pid) for pid, _, arguments in rows if arguments.startswith("ray::ServeReplica")]
        return [pid for pid in found if self.process in _ancestors(pid, parents)]


def _ancestors(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid in parents:
        pid = parents[pid]
        yield pid


def free_port() -> int:
    """A free port below those that the system gives to whoever asks for any: Ray does, many times until a server listens."""
    while True:
        port = random.randrange(10_000, 20_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _started(command: list[str], folder: Path) -> tuple[subprocess.Popen[bytes], list[int]]:
    """A server that is ready, and its ports; it is started again where Ray's own processes were too late, which have 30 s."""
    # Ray's sockets have long names, for which folders of pytest leave no room.
    environment = {name: value for name, value in os.environ.items() if name not in ("TMPDIR", "RAY_ADDRESS")}
    end = time.monotonic() + _START_S
    while True:
        ports = {name: free_port() for name in ("port", "grpc-port", "metrics-port")}
        flags = [text for name, port in ports.items() for text in (f"--{name}", str(port))]
        with (folder / "out").open("w") as out, (folder / "errors").open("w") as errors:
            # In a session of its own it has its share of the CPUs, whatever else runs.
            process = subprocess.Popen(
                [*command, *flags], stdout=out, stderr=errors, env=environment, start_new_session=True
            )
        while process.poll() is None and " serves " not in (folder / "out").read_text():
            if time.monotonic() > end:
                process.kill()
            time.sleep(0.1)
        if process.poll() is None:
            return process, [*ports.values()]
        message = (folder / "errors").read_text()[-2000:]
        assert "on a busy machine, try again" in message, message
        assert time.monotonic() < end, message


@contextmanager
def serving(folder: Path, *arguments: object) -> Iterator[Running]:
    """A server that is ready; what it prints goes to files in a folder."""
    command = [sys.executable, "-P", "-m", "hipdnn_mlir", "serve", *map(str, arguments)]
    process, ports = _started(command, folder)
    try:
        yield Running(process.pid, *(f"127.0.0.1:{port}" for port in ports))
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # as a shell or `timeout` does: Ray's processes get none of it
        try:
            assert process.wait(_STOP_S) == 0, (folder / "errors").read_text()[-2000:]
        finally:
            process.kill()
    assert (folder / "errors").read_text() == ""
    end = time.monotonic() + _STOP_S
    while left := _of_session(process.pid):
        assert time.monotonic() < end, left
        time.sleep(0.1)


def _of_session(leader: int) -> list[str]:
    """Processes that a server has left behind."""
    shown = subprocess.run(["ps", "-eo", "sid=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in shown.splitlines() if line.split(maxsplit=1)[0] == str(leader)]
