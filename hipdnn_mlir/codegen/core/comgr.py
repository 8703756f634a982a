"""ROCm's code object manager, `libamd_comgr.so`, as a linker in this process: it is wherever HIP is, which needs it itself.

Called through ctypes: hip-python's bindings of it come in a package of their own, under names that differ between releases, and with
the numbers of one version of the library, which may be another one than that on the machine.

Source: `amd_comgr.h` of ROCm's llvm-project (amd/comgr).
"""

from __future__ import annotations

import ctypes
import functools
import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ...errors import PassError

_log = logging.getLogger(__name__)

_LINK_TO_EXECUTABLE = {2: 9, 3: 7}
"""Major version -> AMD_COMGR_ACTION_LINK_RELOCATABLE_TO_EXECUTABLE; ROCm 6 has version 2, ROCm 7 version 3."""

_LOG, _RELOCATABLE, _EXECUTABLE = 5, 7, 8
"""AMD_COMGR_DATA_KIND_*."""

_NAMES = ("libamd_comgr.so.3", "libamd_comgr.so.2", "libamd_comgr.so")

# Handles are structures of one 64-bit number, which the ABI passes like the number itself.
_HANDLE = ctypes.c_uint64
_FUNCTIONS: dict[str, list[Any]] = {
    "create_data": [ctypes.c_int, ctypes.POINTER(_HANDLE)],
    "release_data": [_HANDLE],
    "set_data": [_HANDLE, ctypes.c_size_t, ctypes.c_char_p],
    "set_data_name": [_HANDLE, ctypes.c_char_p],
    "get_data": [_HANDLE, ctypes.POINTER(ctypes.c_size_t), ctypes.c_void_p],
    "create_data_set": [ctypes.POINTER(_HANDLE)],
    "destroy_data_set": [_HANDLE],
    "data_set_add": [_HANDLE, _HANDLE],
    "create_action_info": [ctypes.POINTER(_HANDLE)],
    "destroy_action_info": [_HANDLE],
    "action_info_set_isa_name": [_HANDLE, ctypes.c_char_p],
    "action_info_set_logging": [_HANDLE, ctypes.c_bool],
    "do_action": [ctypes.c_int, _HANDLE, _HANDLE, _HANDLE],
    "action_data_count": [_HANDLE, ctypes.c_int, ctypes.POINTER(ctypes.c_size_t)],
    "action_data_get_data": [_HANDLE, ctypes.c_int, ctypes.c_size_t, ctypes.POINTER(_HANDLE)],
}


class Comgr:
    """One opened library. Not for several threads at once.

    Args:
        path: File or name of the library.

    Raises:
        OSError: It cannot be opened.
        AttributeError: It lacks a function.
        ValueError: Its version numbers actions in a way that is not known here.
    """

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL)  # its LLVM must not meet another one in the process
        major, minor = ctypes.c_size_t(), ctypes.c_size_t()
        library.amd_comgr_get_version.restype = None
        library.amd_comgr_get_version(ctypes.byref(major), ctypes.byref(minor))
        if major.value not in _LINK_TO_EXECUTABLE:
            raise ValueError(
                f"its interface has version {major.value}.{minor.value}, known are {sorted(_LINK_TO_EXECUTABLE)}"
            )
        self.path = path
        self._action = _LINK_TO_EXECUTABLE[major.value]
        self._functions = {name: _function(library, name, arguments) for name, arguments in _FUNCTIONS.items()}
        self._describe = library.amd_comgr_status_string
        self._describe.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]

    def link(self, code: bytes, architecture: str) -> bytes:
        """Link an object of an architecture, such as gfx942, to a code object.

        Raises:
            PassError: The library fails; its log is the error's detail.
        """
        with ExitStack() as owned:
            source = owned.enter_context(self._made("create_data", "release_data", _RELOCATABLE))
            self._call("set_data", source, len(code), code)
            self._call("set_data_name", source, b"kernel.o")
            given = owned.enter_context(self._made("create_data_set", "destroy_data_set"))
            linked = owned.enter_context(self._made("create_data_set", "destroy_data_set"))
            self._call("data_set_add", given, source)
            info = owned.enter_context(self._made("create_action_info", "destroy_action_info"))
            self._call("action_info_set_isa_name", info, f"amdgcn-amd-amdhsa--{architecture}".encode())
            self._call("action_info_set_logging", info, True)
            status = self._functions["do_action"](self._action, info, given, linked)
            if status != 0:
                raise self._error("do_action", status, b"".join(self._data(linked, _LOG)).decode(errors="replace"))
            results = list(self._data(linked, _EXECUTABLE))
        if len(results) != 1:
            raise PassError(f"{self.path} made {len(results)} code objects", pass_name="link")
        return results[0]

    def _data(self, data_set: int, kind: int) -> Iterator[bytes]:
        """Return the content of each data object of a kind."""
        count = ctypes.c_size_t()
        self._call("action_data_count", data_set, kind, ctypes.byref(count))
        for index in range(count.value):
            with self._made("action_data_get_data", "release_data", data_set, kind, index) as data:
                size = ctypes.c_size_t()
                self._call("get_data", data, ctypes.byref(size), None)
                content = ctypes.create_string_buffer(size.value)
                self._call("get_data", data, ctypes.byref(size), content)
                yield content.raw

    @contextmanager
    def _made(self, name: str, release: str, *arguments: object) -> Iterator[int]:
        """Make an object, whose handle comes back through the last argument, and give it back in the end."""
        handle = _HANDLE()
        self._call(name, *arguments, ctypes.byref(handle))
        try:
            yield handle.value
        finally:
            self._functions[release](handle.value)

    def _call(self, name: str, *arguments: object) -> None:
        status = self._functions[name](*arguments)
        if status != 0:
            raise self._error(name, status)

    def _error(self, name: str, status: int, detail: str = "") -> PassError:
        words = ctypes.c_char_p()
        self._describe(status, ctypes.byref(words))
        text = (words.value or b"unknown status").decode(errors="replace")
        return PassError(f"{self.path}: amd_comgr_{name}: {text} ({status})", pass_name="link", detail=detail)


def _function(library: ctypes.CDLL, name: str, arguments: list[Any]) -> Any:
    function = getattr(library, f"amd_comgr_{name}")
    function.argtypes = arguments
    function.restype = ctypes.c_int
    return function


@functools.lru_cache(maxsize=1)
def find_comgr() -> Comgr | None:
    """Return the library of ROCM_PATH, of the loader's path or of /opt/rocm; None where there is none of use."""
    roots = [os.environ.get("ROCM_PATH"), "", "/opt/rocm"]
    for path in [
        str(Path(root, "lib", name)) if root else name for root in roots if root is not None for name in _NAMES
    ]:
        try:
            return Comgr(path)
        except OSError:
            continue  # not there, mostly
        except (AttributeError, ValueError) as error:
            _log.warning("%s is not used as a linker: %s", path, error)
    return None
