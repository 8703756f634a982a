"""Compare the values of cudnn_backend_abi.h with those of NVIDIA's header: ``python check_abi.py /usr/include/cudnn_graph.h``."""

import re
import sys
from pathlib import Path

_VALUE = re.compile(r"\b(CUDNN_\w+)(?:\s+CUDNN_DEPRECATED_ENUM)?\s*=\s*(\d+)")


def values(header: Path) -> dict[str, int]:
    """Return the enumerators of a header that are written as numbers."""
    return {name: int(number) for name, number in _VALUE.findall(header.read_text())}


def main(theirs: Path) -> None:
    """Print what differs; exit with 1 where something does."""
    ours = values(Path(__file__).with_name("cudnn_backend_abi.h"))
    official = values(theirs)
    wrong = [
        f"{name}: {number} here, {official.get(name)} there"
        for name, number in ours.items()
        if official.get(name) != number
    ]
    sys.stdout.write("\n".join([*wrong, f"{len(ours)} values, {len(wrong)} differ\n"]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
