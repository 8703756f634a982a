"""Compare the values of a header here with those of its vendor's.

``python check_values.py cudnn/cudnn_backend_abi.h /usr/include/cudnn_graph.h ...``
"""

import re
import sys
from pathlib import Path

_VALUE = re.compile(r"\b((?:CU|CUDA|CUBLAS|CUBLASLT|CUDNN)_\w+)(?:\s+CUDNN_DEPRECATED_ENUM)?\s*=\s*(0x[0-9a-f]+|\d+)")


def values(*headers: Path) -> dict[str, int]:
    """Return the enumerators of headers that are written as numbers."""
    return {name: int(number, 0) for header in headers for name, number in _VALUE.findall(header.read_text())}


def main(ours: Path, *theirs: Path) -> None:
    """Print what differs; exit with 1 where something does."""
    here, official = values(ours), values(*theirs)
    wrong = [
        f"{name}: {number} here, {official.get(name)} there"
        for name, number in here.items()
        if official.get(name) != number
    ]
    sys.stdout.write("\n".join([*wrong, f"{len(here)} values, {len(wrong)} differ\n"]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
