"""An engine plugin behind its C functions, loaded by the rules of AMD's backend."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
ENGINE_TYPE, MAJOR = 1, 1
SUCCESS, BAD_PARAM, INVALID_VALUE, NOT_APPLICABLE = 0, 1, 2, 5
LOG_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p)
REQUIRED = (
    "hipdnnPluginGetName",
    "hipdnnPluginGetVersion",
    "hipdnnPluginGetType",
    "hipdnnPluginGetLastErrorString",
    "hipdnnPluginSetLoggingCallback",
    "hipdnnEnginePluginGetAllEngineIds",
    "hipdnnEnginePluginCreate",
    "hipdnnEnginePluginDestroy",
    "hipdnnEnginePluginSetStream",
    "hipdnnEnginePluginGetApplicableEngineIds",
    "hipdnnEnginePluginGetEngineDetails",
    "hipdnnEnginePluginDestroyEngineDetails",
    "hipdnnEnginePluginGetWorkspaceSize",
    "hipdnnEnginePluginCreateExecutionContext",
    "hipdnnEnginePluginDestroyExecutionContext",
    "hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext",
    "hipdnnEnginePluginExecuteOpGraph",
)
"""Without one of these AMD's backend does not load a plugin (EnginePlugin.cpp, PluginCore.cpp)."""


class Data(ctypes.Structure):
    """Bytes across the interface."""

    _fields_ = (("ptr", ctypes.c_void_p), ("size", ctypes.c_size_t))

    @classmethod
    def of(cls, raw: bytes) -> Data:
        """Those bytes, kept alive by the structure."""
        data = cls(ctypes.cast(ctypes.c_char_p(raw), ctypes.c_void_p), len(raw))
        data.raw = raw  # type: ignore[attr-defined]
        return data

    def taken(self) -> bytes:
        """A copy."""
        return ctypes.string_at(self.ptr, self.size)


class Buffer(ctypes.Structure):
    """A tensor's memory."""

    _fields_ = (("uid", ctypes.c_int64), ("ptr", ctypes.c_void_p))


class PluginError(Exception):
    """A function failed; the text is the plugin's own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"status {status}: {message}")
        self.status = status


def engine_id(name: str) -> int:
    """The id that an engine of that name must have: 64-bit FNV-1a, signed (EngineIdHash.hpp)."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value - 2**64 if value >= 2**63 else value


class Plugin:
    """A loaded plugin with one handle.

    Args:
        path: of the library.
    """

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        missing = [name for name in REQUIRED if not hasattr(self.library, name)]
        assert not missing, f"{path} lacks {missing}"
        kind = ctypes.c_int()
        self.call("hipdnnPluginGetType", ctypes.byref(kind))
        assert kind.value == ENGINE_TYPE
        assert int(self.text("hipdnnPluginGetApiVersion").split(".")[0]) == MAJOR
        self.handle = self.create()

    def __del__(self) -> None:
        if handle := getattr(self, "handle", None):
            self.call("hipdnnEnginePluginDestroy", handle)

    def create(self) -> ctypes.c_void_p:
        """Another handle."""
        handle = ctypes.c_void_p()
        self.call("hipdnnEnginePluginCreate", ctypes.byref(handle))
        return handle

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function.

        Raises:
            PluginError: It does not answer success.
        """
        status = getattr(self.library, name)(*arguments)
        if status != SUCCESS:
            raise PluginError(status, self.last_error())

    def last_error(self) -> str:
        """The calling thread's."""
        message = ctypes.c_char_p()
        self.library.hipdnnPluginGetLastErrorString(ctypes.byref(message))
        return (message.value or b"").decode()

    def text(self, name: str, *arguments: Any) -> str:
        """What a function answers through its last argument."""
        answer = ctypes.c_char_p()
        self.call(name, *arguments, ctypes.byref(answer))
        assert answer.value is not None
        return answer.value.decode()

    def engines(self) -> dict[int, str]:
        """Names by id."""
        count = ctypes.c_uint32()
        self.call("hipdnnEnginePluginGetAllEngineIds", None, 0, ctypes.byref(count))
        ids = (ctypes.c_int64 * count.value)()
        self.call("hipdnnEnginePluginGetAllEngineIds", ids, count, ctypes.byref(count))
        return {i: self.text("hipdnnEnginePluginGetEngineName", ctypes.c_int64(i)) for i in ids}

    def applicable(self, graph: bytes) -> list[str]:
        """Names of the engines that take a graph."""
        known = self.engines()
        ids, count = (ctypes.c_int64 * len(known))(), ctypes.c_uint32()
        self.call(
            "hipdnnEnginePluginGetApplicableEngineIds",
            self.handle,
            ctypes.byref(Data.of(graph)),
            ids,
            len(known),
            ctypes.byref(count),
        )
        return [known[i] for i in ids[: count.value]]

    def details(self, engine: int, graph: bytes) -> bytes:
        """An engine's details."""
        given = Data()
        self.call(
            "hipdnnEnginePluginGetEngineDetails",
            self.handle,
            ctypes.c_int64(engine),
            ctypes.byref(Data.of(graph)),
            ctypes.byref(given),
        )
        taken = given.taken()
        self.call("hipdnnEnginePluginDestroyEngineDetails", self.handle, ctypes.byref(given))
        assert not given.ptr
        return taken

    def workspace_bytes(self, configuration: bytes, graph: bytes) -> int:
        """What an engine needs, before there is a context."""
        size = ctypes.c_size_t()
        config, data = Data.of(configuration), Data.of(graph)
        self.call(
            "hipdnnEnginePluginGetWorkspaceSize",
            self.handle,
            ctypes.byref(config),
            ctypes.byref(data),
            ctypes.byref(size),
        )
        return size.value

    @contextmanager
    def context(self, configuration: bytes, graph: bytes) -> Iterator[Context]:
        """An execution context."""
        made = ctypes.c_void_p()
        config, data = Data.of(configuration), Data.of(graph)
        self.call(
            "hipdnnEnginePluginCreateExecutionContext",
            self.handle,
            ctypes.byref(config),
            ctypes.byref(data),
            ctypes.byref(made),
        )
        with self._owned(made) as context:
            yield context

    @contextmanager
    def restored(self, serialized: bytes) -> Iterator[Context]:
        """The context that was serialized."""
        made = ctypes.c_void_p()
        self.call(
            "hipdnnEnginePluginCreateExecutionContextFromSerialized",
            self.handle,
            ctypes.byref(Data.of(serialized)),
            ctypes.byref(made),
        )
        with self._owned(made) as context:
            yield context

    @contextmanager
    def _owned(self, made: ctypes.c_void_p) -> Iterator[Context]:
        try:
            yield Context(self, made)
        finally:
            self.call("hipdnnEnginePluginDestroyExecutionContext", self.handle, made)


class Context:
    """An execution context, which its plugin destroys."""

    device_bit = 0
    """Set in the addresses of arrays that are to lie where the CPU cannot read them."""

    def __init__(self, plugin: Plugin, made: ctypes.c_void_p) -> None:
        self._plugin, self._made = plugin, made

    def workspace_bytes(self) -> int:
        """What an execution needs."""
        size = ctypes.c_size_t()
        self._plugin.call(
            "hipdnnEnginePluginGetWorkspaceSizeFromExecutionContext",
            self._plugin.handle,
            self._made,
            ctypes.byref(size),
        )
        return size.value

    def serialize(self) -> bytes:
        """Bytes to restore it from."""
        given = Data()
        self._plugin.call(
            "hipdnnEnginePluginSerializeExecutionContextWithEngineId",
            self._plugin.handle,
            ctypes.c_int64(0),
            self._made,
            ctypes.byref(given),
        )
        taken = given.taken()
        self._plugin.call(
            "hipdnnEnginePluginDestroySerializedExecutionContext", self._plugin.handle, ctypes.byref(given)
        )
        return taken

    def execute(
        self,
        arrays: Mapping[int, Array],
        shapes: Mapping[int, tuple[Sequence[int], Sequence[int]]] | None = None,
        handle: ctypes.c_void_p | None = None,
    ) -> None:
        """Run on arrays by uid, with dims and strides by uid for those whose shapes differ from the graph's."""
        buffers = (Buffer * len(arrays))(*((uid, array.ctypes.data | self.device_bit) for uid, array in arrays.items()))
        room = np.zeros(self.workspace_bytes() + 1, np.uint8)  # at an address that is no multiple of anything
        head = [handle or self._plugin.handle, self._made, ctypes.c_void_p(room.ctypes.data + 1), buffers, len(arrays)]
        if shapes is None:
            self._plugin.call("hipdnnEnginePluginExecuteOpGraph", *head)
            return
        lists = [[(ctypes.c_int64 * len(v[i]))(*v[i]) for v in shapes.values()] for i in (0, 1)]
        pointers = [(ctypes.POINTER(ctypes.c_int64) * len(shapes))(*one) for one in lists]
        lengths = (ctypes.c_uint32 * len(shapes))(*(len(dims) for dims, _ in shapes.values()))
        uids = (ctypes.c_int64 * len(shapes))(*shapes)
        self._plugin.call("hipdnnEnginePluginExecuteOpGraphWithOverrides", *head, len(shapes), uids, lengths, *pointers)
