"""A port's library whose calls are counted (counting_port.c), laid out beside a copy of the provider's library."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

from hipdnn_mlir_runtime import ort_ep

HEADERS = Path(__file__).parents[2] / "third_party" / "hip"


class Counts(ctypes.Structure):
    """Calls since the library was loaded, as ``struct counts`` of counting_port.c."""

    _fields_ = [
        (name, ctypes.c_ulonglong)
        for name in (
            "to_device",
            "to_host",
            "on_device",
            "synchronizations",
            "allocations",
            "launches",
            "graph_launches",
        )
    ]

    def since(self, before: Counts) -> dict[str, int]:
        """Return the calls between two readings, by name, without those that there were none of."""
        now = {name: getattr(self, name) - getattr(before, name) for name, _ in self._fields_}
        return {name: count for name, count in now.items() if count}


def lay_out(folder: Path, *, played_by: str = "libhipdnn_cuda.so", architecture: str = "") -> Path:
    """Build the library in a folder, with the provider's and the host's beside it; return the provider's path.

    Args:
        folder: An empty folder.
        played_by: The library behind the counts.
        architecture: What the device says it is; empty for what it is.

    Raises:
        FileNotFoundError: There is no C compiler ``cc``.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("no C compiler cc")
    libraries = Path(ort_ep.get_library_path()).parent
    real = libraries / played_by
    # A copy, so that its folder is this one; the loader knows a link by what it links to.
    shutil.copy(libraries / "libhipdnn_ep.so", folder)
    (folder / "libhipdnn_host.so").symlink_to(libraries / "libhipdnn_host.so")
    defines = [f'-DREAL="{real}"', *([f'-DARCHITECTURE="{architecture}"'] if architecture else [])]
    options = ["-shared", "-fPIC", "-Wall", "-Werror", f"-I{HEADERS}", *defines]
    # A name of its own, or the loader would take it for the library that it is linked to.
    linking = ["-Wl,--no-as-needed", "-Wl,-soname,libhipdnn_counting.so", f"-Wl,-rpath,{libraries}"]
    files = [
        str(Path(__file__).with_name("counting_port.c")),
        str(real),
        "-ldl",
        "-o",
        str(folder / "libhipdnn_cuda.so"),
    ]
    subprocess.run([compiler, *options, *linking, *files], check=True)
    return folder / "libhipdnn_ep.so"


def read_counts(provider: Path) -> Counts:
    """Return the counts of the library beside a provider's."""
    call = ctypes.CDLL(str(provider.with_name("libhipdnn_cuda.so"))).callCounts
    call.restype = Counts
    counts = call()
    assert isinstance(counts, Counts)
    return counts
