"""An AMDGPU object -> the code object that `hipModuleLoadData` takes."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from ..errors import ModelError, PassError

_LINKER = "ld.lld"


def link_code_object(code: bytes) -> bytes:
    """Link with LLVM's linker, where it is on PATH; ROCm's comgr does the same on a machine that has it.

    Raises:
        ModelError: there is no linker.
        PassError: it failed.
    """
    linker = shutil.which(_LINKER)
    if linker is None:
        raise ModelError(
            f"code for an AMD GPU is linked with {_LINKER}, which is not on PATH",
            hint="install LLVM's lld, or add ROCm's llvm/bin to PATH",
        )
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "kernel.o"), Path(folder, "kernel.hsaco")
        source.write_bytes(code)
        run = subprocess.run(
            [linker, "-shared", "--no-undefined", str(source), "-o", str(result)],
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode != 0:
            raise PassError(f"{_LINKER} failed", pass_name="link", detail=run.stderr)
        return result.read_bytes()
