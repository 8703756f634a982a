"""Whether this machine can run `make test-rocm`, by the standard library alone: prints what is missing and exits 1 where it cannot."""

import ctypes
import sys
from pathlib import Path

HIP = ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so")
HIPDNN = (
    "libhipdnn_backend.so",
    "libhipdnn_backend.so.1",
    "libhipdnn_backend.so.0",
    "/opt/rocm/lib/libhipdnn_backend.so",
)
"""As the runtime looks for them (runtime/src/device/library.cc)."""
DRIVER = Path("/dev/kfd")


def opened(names: tuple[str, ...]) -> ctypes.CDLL | None:
    """The first library that opens."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def device_count(hip: ctypes.CDLL) -> int:
    """AMD GPUs that HIP sees."""
    count = ctypes.c_int(0)
    return count.value if hip.hipGetDeviceCount(ctypes.byref(count)) == 0 else 0


def missing() -> list[str]:
    """What is missing, with what to do about it."""
    problems = []
    hip, hipdnn = opened(HIP), opened(HIPDNN)
    if not DRIVER.exists():
        problems.append(f"{DRIVER} does not exist: no AMD GPU, or its driver (amdgpu) is not loaded")
    if hip is None:
        problems.append(f"{HIP[0]} does not open: install ROCm 6 or newer, and put its lib folder on LD_LIBRARY_PATH")
    elif device_count(hip) == 0:
        problems.append(
            "HIP sees no device: is the user in the groups 'render' and 'video', is HIP_VISIBLE_DEVICES empty?"
        )
    if hipdnn is None:
        problems.append(
            f"{HIPDNN[0]} does not open: install ROCm's hipDNN with its MIOpen, hipBLASLt and HIP kernel providers"
        )
    return problems


def main() -> int:
    """Print the problems, if any."""
    problems = missing()
    if problems:
        sys.stderr.write("\n- ".join(["this machine cannot test on AMD's libraries:", *problems]) + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
