"""Messages over a stream socket: the length, 4 bytes little-endian, then that many bytes; file descriptors come with the first ones."""

import os
import socket
from collections.abc import Iterable

MAX_MESSAGE_BYTES = 64 << 20
_MAX_DESCRIPTORS = 8
_LENGTH_BYTES = 4


class Connection:
    """One end of a connection.

    Args:
        connection: a connected AF_UNIX stream socket, whose time limit holds for each wait.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._descriptors: list[int] = []

    def receive(self) -> tuple[bytes, list[int]] | None:
        """Return the next message and its file descriptors, or None where the other end has closed.

        Raises:
            ConnectionError: the message is too long.
            TimeoutError: nothing came within the socket's time limit.
        """
        self._descriptors = []
        head = self._read(_LENGTH_BYTES)
        length = int.from_bytes(head or b"", "little")
        if length > MAX_MESSAGE_BYTES:
            raise ConnectionError(f"a message of {length} bytes: at most {MAX_MESSAGE_BYTES}")
        body = self._read(length) if head is not None else None
        if body is None:
            close_all(self._descriptors)
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
                self._socket, count - len(data), _MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
            )
            self._descriptors += found
            if not part:
                return None
            data += part
        return data


def close_all(descriptors: Iterable[int]) -> None:
    """Close file descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)
