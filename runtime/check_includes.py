"""Check that the folders of runtime/src include each other one way (``python runtime/check_includes.py``)."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent
CORE = ("src/device", "src/storage", "src/program", "src/plan", "src/execute")
ALLOWED = {room: CORE[:place] for place, room in enumerate(CORE)} | {
    "src/ort_ep": CORE,
    "src/engine_plugin": CORE,
    "bindings": CORE,
    "src/ports/frontend": (),
    "src/ports/host": ("src/ports/frontend",),
    "src/ports/cuda": ("src/ports/frontend",),
}
"""What each folder may include beside itself; headers of third_party are open to all."""

SEARCHED = ("src", "src/ports", "src/ports/host", "src/ort_ep")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def room_of(path: Path) -> str | None:
    """The folder of ``ALLOWED`` that has the file."""
    name = path.relative_to(ROOT).as_posix()
    return next((room for room in ALLOWED if name.startswith(f"{room}/")), None)


def resolve(name: str, source: Path) -> Path | None:
    """The file of the runtime that an include names, as the compiler finds it."""
    candidates = [folder / name for folder in (source.parent, *(ROOT / searched for searched in SEARCHED))]
    return next((path.resolve() for path in candidates if path.is_file()), None)


def violations(source: Path) -> Iterator[str]:
    """A line for each include of a file that its folder may not have."""
    room = room_of(source)
    if room is None:
        yield f"{source.relative_to(ROOT.parent)}: in no folder that check_includes.py knows"
        return
    for name in INCLUDE.findall(source.read_text(encoding="utf-8")):
        included = resolve(name, source)
        if included is None:
            continue
        other = room_of(included)
        if other != room and other not in ALLOWED[room]:
            yield f"{source.relative_to(ROOT.parent)}: includes {name} of {other}; {room} may include {', '.join(ALLOWED[room]) or 'none'}"


def main() -> int:
    """Print each include against the order; 1 where there is one."""
    sources = [
        path
        for folder in ("src", "bindings")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".cc", ".h", ".inc")
    ]
    wrong = [line for source in sorted(sources) for line in violations(source)]
    sys.stdout.writelines(f"{line}\n" for line in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
