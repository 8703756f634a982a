"""An AMDGPU object -> the code object that `hipModuleLoadData` takes."""

import functools
import os
import re
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from hipdnn_mlir_runtime.errors import MissingToolError, PassError

_OLDEST = 15
"""The first LLVM whose linker reads objects of code object version 5."""
_NEWEST = 40


def link_code_object(code: bytes) -> bytes:
    """Link with LLVM's linker.

    Args:
        code: the object.

    Raises:
        MissingToolError: there is no linker.
        PassError: it failed.
    """
    linker = needed_linker()
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "kernel.o"), Path(folder, "kernel.hsaco")
        source.write_bytes(code)
        run = subprocess.run(
            [*linker, "-shared", "--no-undefined", str(source), "-o", str(result)],
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode != 0:
            raise PassError(f"{linker[0]} failed", pass_name="link", detail=run.stderr)
        return result.read_bytes()


def needed_linker() -> list[str]:
    """The command of a linker, as `find_linker` gives it.

    Raises:
        MissingToolError: there is none.
    """
    linker = find_linker()
    if linker is None:
        raise MissingToolError(
            "code for AMD GPUs is linked with LLVM's ld.lld, which was not found",
            expected=f"ROCm's linker, ld.lld (LLVM {_OLDEST} or newer) on PATH, or the Python package ziglang",
            hint="pip install ziglang",
        )
    return linker


def find_linker() -> list[str] | None:
    """The command of a linker: ROCm's, the newest on PATH, that of the Python package ziglang; None where there is none."""
    for root in (os.environ.get("ROCM_PATH"), "/opt/rocm"):
        linker = Path(root, "llvm", "bin", "ld.lld") if root else None
        if linker is not None and linker.exists():
            return [str(linker)]
    plain = shutil.which("ld.lld")
    if plain is not None and _version(plain) >= _OLDEST:
        return [plain]
    for version in range(_NEWEST, _OLDEST - 1, -1):  # as Debian and Ubuntu name them
        if named := shutil.which(f"ld.lld-{version}"):
            return [named]
    zig = find_spec("ziglang")
    if zig is not None and zig.submodule_search_locations:
        return [str(Path(zig.submodule_search_locations[0], "zig")), "ld.lld"]
    return None


@functools.lru_cache
def _version(linker: str) -> int:
    """The LLVM version that a linker is of; 0 where it does not say."""
    run = subprocess.run([linker, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"LLD (\d+)", run.stdout)
    return int(found[1]) if found else 0
