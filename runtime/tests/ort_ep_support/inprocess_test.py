"""The compiler service inside a running Python: inprocess_test.py HOST_MODULE FAKE_SERVER.

The module is loaded as ONNX Runtime loads an EP: its functions run without the interpreter's lock, and take it.
"""

import concurrent.futures
import ctypes
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

MODULE, FAKE_SERVER = sys.argv.pop(1), sys.argv.pop(1)


class Host:
    """A compiler service of its own, with a package in a folder of its own."""

    def __init__(self, root: pathlib.Path) -> None:
        self.library = ctypes.CDLL(MODULE)
        self.library.host_create.restype = ctypes.c_void_p
        self.service = ctypes.c_void_p(self.library.host_create(str(root).encode()))

    def ask(self, request: dict, descriptors: tuple[int, ...] = (), *, inprocess: bool = True) -> dict:
        """What became of a request."""
        told = ctypes.create_string_buffer(1 << 16)
        numbers = (ctypes.c_int * len(descriptors))(*descriptors)
        text = json.dumps(request).encode()
        status = self.library.host_ask(
            self.service,
            int(inprocess),
            text,
            numbers,
            ctypes.c_size_t(len(descriptors)),
            told,
            ctypes.c_size_t(len(told)),
        )
        assert status == 0
        return json.loads(told.value)

    def close(self) -> None:
        """End the service."""
        self.library.host_destroy(self.service)


class InProcessTest(unittest.TestCase):
    """Requests to the interpreter that runs this test."""

    def setUp(self) -> None:
        """A fresh package, not imported yet."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        package = self.root / "hipdnn_mlir"
        (package / "service").mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "service" / "__init__.py").touch()
        shutil.copy(FAKE_SERVER, package / "service" / "server.py")
        self.version = package / "VERSION"
        self.host = Host(self.root)
        self.addCleanup(self.host.close)
        self.host.library.host_version.restype = ctypes.c_char_p
        self.version.write_bytes(self.host.library.host_version())
        self.addCleanup(self.forget)
        self.path = list(sys.path)

    def forget(self) -> None:
        """Undo the import of the package."""
        sys.path[:] = self.path
        for name in [name for name in sys.modules if name.startswith("hipdnn_mlir")]:
            del sys.modules[name]

    def test_answered_here_when_the_package_is_not_on_the_path(self) -> None:
        """Its folder goes to the end of the search path, once; the files stay open."""
        with tempfile.TemporaryFile() as file:
            file.write(b"the model")
            file.flush()
            told = self.host.ask({"action": "echo", "payload": "\u4e2d"}, (file.fileno(),))
            os.fstat(file.fileno())
        assert told["description"] == "inprocess"
        assert told["result"] == {"payload": "中", "contents": ["the model"], "pid": os.getpid()}
        assert sys.path == [*self.path, str(self.root)]
        self.host.ask({"action": "echo"})
        assert sys.path == [*self.path, str(self.root)]

    def test_exception_told_when_the_compiler_raises(self) -> None:
        """Whatever goes wrong in Python is an error with its text, and the next request works."""
        told = self.host.ask({"action": "raise"})
        assert told["cause"] == "crashed"
        assert (
            "the compiler in this process failed: ValueError: a mistake in the compiler; set the option"
            in told["message"]
        )
        told = self.host.ask({"action": "text"})
        assert "TypeError: expected bytes, str found" in told["message"]
        told = self.host.ask({"action": "garbage"})
        assert "sent a reply that is no JSON object" in told["message"]
        told = self.host.ask({"action": "refuse"})
        assert (told["cause"], told["kind"], told["message"]) == ("refused", "ModelError", "model.onnx: no such node")
        assert "result" in self.host.ask({"action": "echo"})

    def test_unavailable_when_the_package_is_missing(self) -> None:
        """The reason is that of the import."""
        shutil.rmtree(self.root / "hipdnn_mlir")
        sys.modules["hipdnn_mlir"] = None  # as if no folder on the path had it
        told = self.host.ask({"action": "echo"})
        assert (told["available"], told["cause"]) == (False, "unavailable")
        assert "the compiler in this process cannot be imported: ModuleNotFoundError: " in told["message"]
        assert told["message"] == told["description"]

    def test_unavailable_when_the_version_differs(self) -> None:
        """As for a process of its own."""
        self.version.write_text("0.0.9")
        told = self.host.ask({"action": "echo"})
        assert (told["available"], told["cause"]) == (False, "unavailable")
        assert "this process's Python has hipdnn_mlir 0.0.9, this library needs " in told["message"]

    def test_own_interpreter_started_when_automatic(self) -> None:
        """A Python host needs no option to say which Python."""
        told = self.host.ask({"action": "echo"}, inprocess=False)
        assert told["description"] == f"subprocess {sys.executable}"
        assert told["result"]["pid"] != os.getpid()

    def test_every_thread_answered_when_requests_are_concurrent(self) -> None:
        """Nobody waits for the interpreter while holding what its holder waits for."""

        def ask(number: int) -> None:
            for inprocess in (True, False):
                told = self.host.ask({"action": "echo", "payload": number}, inprocess=inprocess)
                assert told["result"]["payload"] == number

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(40)))

    def test_nothing_leaks_when_asked_often(self) -> None:
        """Neither descriptors nor references to objects."""

        def count() -> tuple[int, int]:
            return len(list(pathlib.Path("/proc/self/fd").iterdir())), sys.getrefcount(
                sys.modules["hipdnn_mlir.service.server"].answer
            )

        self.host.ask({"action": "echo"})
        before = count()
        for action in ("echo", "raise", "text", "refuse") * 50:
            self.host.ask({"action": action}, (0,) if action == "raise" else ())
        assert count() == before


if __name__ == "__main__":
    unittest.main()
