"""Stands in for hipdnn_mlir.service.server: speaks its protocol, and misbehaves on request."""

import array
import json
import os
import pathlib
import signal
import socket
import sys
import time

HERE = pathlib.Path(__file__).parents[1]


class Connection:
    """Framing, written against the protocol's description alone."""

    def __init__(self, descriptor: int) -> None:
        self.socket = socket.socket(fileno=descriptor)
        self.descriptors: list[int] = []

    def read(self, count: int) -> bytes:
        """Exactly `count` bytes, or fewer at the end of the stream."""
        data = b""
        while len(data) < count:
            part, ancillary, _, _ = self.socket.recvmsg(min(count - len(data), 1 << 16), socket.CMSG_LEN(64 * 4))
            for _, _, payload in ancillary:
                numbers = array.array("i")
                numbers.frombytes(payload[: len(payload) // 4 * 4])
                self.descriptors += numbers
            if not part:
                break
            data += part
        return data

    def receive(self) -> dict | None:
        """The next request, or None at the end of the stream."""
        self.descriptors = []
        head = self.read(4)
        return json.loads(self.read(int.from_bytes(head, "little"))) if len(head) == 4 else None

    def send(self, reply: bytes) -> None:
        """One framed reply."""
        self.socket.sendall(len(reply).to_bytes(4, "little") + reply)


def hello() -> dict:
    """Who this is: the version is a file beside the module."""
    return {"version": (HERE / "VERSION").read_text(), "producers": {"fake": "1"}, "targets": ["host"]}


def echo(request: dict, descriptors: list[int]) -> dict:
    """The request's payload and the files' contents; what was asked to be written goes to the last file."""
    contents = [os.pread(descriptor, 1 << 20, 0).decode() for descriptor in descriptors]
    if "write" in request:
        os.pwrite(descriptors[-1], request["write"].encode(), 0)
    return {"payload": request.get("payload"), "contents": contents, "pid": os.getpid()}


def surroundings() -> dict:
    """What this process was started with."""
    # The folder's own descriptor is gone when its link is read.
    files = {path.name: str(path.readlink()) for path in pathlib.Path("/proc/self/fd").iterdir() if path.is_symlink()}
    return {
        "pythonpath": os.environ.get("PYTHONPATH", ""),
        "files": files,
        "safe_path": sys.flags.safe_path,
        "group": os.getpgid(0),
        "pid": os.getpid(),
        "termination": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
        "blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
    }


def say_last_words() -> None:
    """Print enough to fill any bound, then something to look for."""
    sys.stderr.write("x" * 5000 + " last words of the compiler\n")
    sys.stderr.flush()


def misbehave(connection: Connection, action: str) -> None:
    """Everything that is no proper reply."""
    if action == "crash":
        say_last_words()
        os.kill(os.getpid(), signal.SIGSEGV)
    elif action == "crash_with_heir":
        # The heir keeps the socket open, so that its other end sees no end of stream.
        heir = os.fork()
        if heir != 0:
            (HERE / "heir").write_text(str(heir))
            os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(600)
    elif action == "exit":
        sys.exit(7)
    elif action == "hang":
        (HERE / "hangs").touch()
        time.sleep(600)
    elif action == "close":
        connection.socket.close()
        time.sleep(600)
    elif action == "half":
        connection.socket.sendall((100).to_bytes(4, "little") + b'{"res')
        sys.exit(0)
    elif action == "endless":
        connection.socket.sendall(b"\xff\xff\xff\xff")
        time.sleep(600)
    elif action == "garbage":
        connection.send(b"\x80 this is no JSON")
    elif action == "list":
        connection.send(b"[]")
    elif action == "neither":
        connection.send(b'{"neither": 1}')


def perform(request: dict, descriptors: list[int]) -> dict | None:
    """The reply to a well-behaved request, or None."""
    action = request["action"]
    if action == "hello":
        return {"result": hello()}
    if action == "echo":
        return {"result": echo(request, descriptors)}
    if action == "surroundings":
        return {"result": surroundings()}
    if action == "blob":
        return {"result": "b" * request["bytes"]}
    if action == "stay":
        (HERE / "stays").touch()
        return {"result": os.getpid()}
    if action == "chat":
        sys.stderr.write("chatter about a request that went well\n")
        return {"result": None}
    if action == "refuse":
        return {"error": {"kind": "ModelError", "message": "model.onnx: no such\nnode", "detail": "line 1\nline 2"}}
    return None


def answer(message: bytes, descriptors: list[int]) -> bytes:
    """One request in the host's process."""
    request = json.loads(message)
    if request["action"] == "raise":
        raise ValueError("a mistake in the compiler")
    if request["action"] == "garbage":
        return b"no JSON"
    if request["action"] == "text":
        return "not bytes"
    return json.dumps(perform(request, descriptors)).encode()


def main() -> None:
    """Serve until the stream ends; longer after `stay`."""
    with (HERE / "starts").open("a") as starts:
        starts.write("started\n")
    if (HERE / "broken").exists():
        sys.exit((HERE / "broken").read_text())
    connection = Connection(int(sys.argv[1]))
    while (request := connection.receive()) is not None:
        if request["action"] == "turn_deaf":
            connection.send(b'{"result": null}')
            connection.read(4)
            sys.exit(3)
        reply = perform(request, connection.descriptors)
        if reply is None:
            misbehave(connection, request["action"])
        else:
            connection.send(json.dumps(reply).encode())
        for descriptor in connection.descriptors:
            os.close(descriptor)
    if (HERE / "stays").exists():
        time.sleep(600)


if __name__ == "__main__":
    main()
