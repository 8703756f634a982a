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
NEEDED = "ROCm Core SDK 10.0"
"""The first release that was seen to have what the runtime needs (runtime/src/device/library.cc)."""
TENSOR_DESCRIPTOR, SUCCESS = 14, 0


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


def takes_tensors(hipdnn: ctypes.CDLL) -> bool:
    """Whether a hipDNN takes graphs of descriptors: the first versions took bytes alone."""
    made = ctypes.c_void_p()
    return bool(hipdnn.hipdnnBackendCreateDescriptor(TENSOR_DESCRIPTOR, ctypes.byref(made)) == SUCCESS)


def version_of(hipdnn: ctypes.CDLL) -> str:
    """What a hipDNN says of itself."""
    try:
        told = hipdnn.hipdnnVersionString_ext
    except AttributeError:
        return "a hipDNN that tells no version"
    told.restype = ctypes.c_char_p
    return f"hipDNN {told().decode()}"


def missing() -> list[str]:
    """What is missing, with what to do about it."""
    problems = []
    hip, hipdnn = opened(HIP), opened(HIPDNN)
    if not DRIVER.exists():
        problems.append(f"{DRIVER} does not exist: no AMD GPU, or its driver (amdgpu) is not loaded")
    if hip is None:
        problems.append(f"{HIP[0]} does not open: install {NEEDED} or newer, and put its lib folder on LD_LIBRARY_PATH")
    elif device_count(hip) == 0:
        problems.append(
            "HIP sees no device: is the user in the groups 'render' and 'video', is HIP_VISIBLE_DEVICES empty?"
        )
    if hipdnn is None:
        problems.append(
            f"{HIPDNN[0]} does not open: install ROCm's hipDNN with its MIOpen, hipBLASLt and HIP kernel providers"
        )
    elif not takes_tensors(hipdnn):
        problems.append(f"{version_of(hipdnn)} has no descriptors of tensors: install {NEEDED} or newer")
    return problems


def main() -> int:
    """Print the problems, if any."""
    problems = missing()
    if problems:
        sys.stderr.write("\n- ".join(["this machine cannot test on AMD's libraries:", *problems]) + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
