"""The script that gives a copy of oneDNN names of its own, on small libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "runtime" / "src" / "ports" / "host" / "private_onednn.py"
ONEDNN = """
#include <unistd.h>
static int parts;
int dnnl_parts(void) {
  #pragma omp parallel
  {
    #pragma omp barrier
    parts += 1;
  }
  return parts;
}
int dnnl_twice(void) { return dnnl_parts() + dnnl_parts() + (getpid() == 0); }
"""
CREW = """
void HOMP_barrier(void) {}
void HOMP_parallel(void (*part)(void*), void* data, unsigned count, unsigned flags) { for (int i = 0; i < 5; ++i) part(data); }
"""
USE = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
made = ctypes.CDLL(sys.argv[2])
assert made.dnoK_twice() == 15
assert not hasattr(made, "dnnl_twice")
assert "libgomp" not in open("/proc/self/maps").read()
"""


def build(library: Path, source: str, *options: str) -> Path:
    """Compile C to a shared library."""
    code = library.with_suffix(".c")
    code.write_text(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(code), *options], check=True)
    return library


def make_private(library: Path) -> subprocess.CompletedProcess[str]:
    """Run the script; the copy is ``copy.so`` beside the library."""
    command = [
        sys.executable,
        str(SCRIPT),
        *map(str, (library, library.with_name("copy.so"), library.with_name("names.h"))),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_calls_arrive_under_the_new_names_when_a_library_is_copied(tmp_path: Path) -> None:
    done = make_private(build(tmp_path / "libdnnl.so", ONEDNN, "-fopenmp", "-Wl,-soname,libdnnl.so.3"))
    assert done.returncode == 0, done.stderr
    crew = build(tmp_path / "libcrew.so", CREW)
    subprocess.run([sys.executable, "-c", USE, str(crew), str(tmp_path / "copy.so")], check=True)
    assert (tmp_path / "names.h").read_text().splitlines()[2:] == [
        "#define dnnl_parts dnoK_parts",
        "#define dnnl_twice dnoK_twice",
    ]


def test_a_copy_is_made_when_a_library_needs_no_openmp(tmp_path: Path) -> None:
    library = build(
        tmp_path / "libdnnl.so", "#include <math.h>\ndouble dnnl_root(double x) { return sqrt(x); }\n", "-lm"
    )
    done = make_private(library)
    assert done.returncode == 0, done.stderr
    use = "import ctypes, sys; f = ctypes.CDLL(sys.argv[1]).dnoK_root; f.restype = ctypes.c_double; assert f(ctypes.c_double(9)) == 3"
    subprocess.run([sys.executable, "-c", use, str(tmp_path / "copy.so")], check=True)


@pytest.mark.parametrize("case", ["text", "other runtime", "old hash table", "archive"])
def test_reason_is_named_when_a_library_cannot_be_copied(case: str, tmp_path: Path) -> None:
    library = tmp_path / "libdnnl.so"
    if case == "text":
        library.write_text("not a library")
        reason = "is no shared library for x86-64"
    elif case == "archive":
        library.write_bytes(b"!<arch>\n" + bytes(100))
        reason = "is no shared library for x86-64"
    elif case == "other runtime":
        build(tmp_path / "libiomp5.so", "void __kmpc_barrier(void) {}")
        other = [f"-L{tmp_path}", "-Wl,--no-as-needed", "-liomp5"]
        build(library, ONEDNN, *other)
        reason = "needs libiomp5.so: expected oneDNN on libgomp, or without OpenMP"
    else:
        build(library, ONEDNN, "-Wl,--hash-style=sysv")
        reason = "has no table of hashes"
    done = make_private(library)
    assert done.returncode == 1
    assert done.stderr.strip() == f"{library}: {reason}"
    assert not (tmp_path / "copy.so").exists()
