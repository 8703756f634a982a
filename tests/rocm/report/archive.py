"""The files of a report, and one archive of them to send: everything that is written passes here, without what is private."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .cases import Suite
from .private import Private


def write(folder: Path, page: str, data: Mapping[str, Any], suites: Sequence[Suite]) -> Path:
    """Write `report.md`, `report.json` and `logs/` into a folder, and all of them as `FOLDER.tar.gz`.

    Returns:
        The archive.
    """
    private = Private()
    files = {"report.md": private.without(page)}
    files["report.json"] = json.dumps(private.within(data), indent=1, ensure_ascii=False)
    for suite in suites:
        told = [case for case in suite.cases if case.log and case.status != "passed"]
        logs = [f"== {case.name} ({case.status})\n{case.reason}\n{case.log}\n" for case in told]
        if logs:
            files[f"logs/{re.sub('[^a-z0-9+_]+', '-', suite.name.lower())}.log"] = private.without("\n".join(logs))
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    archive = folder.with_name(f"{folder.name}.tar.gz")
    with tarfile.open(archive, "w:gz") as packed:
        for name in files:
            packed.add(folder / name, f"rocm-report/{name}", filter=_anonymous)
    return archive


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """The entry without its owner."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
