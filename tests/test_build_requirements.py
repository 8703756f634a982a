"""What builds the packages is pinned by its hashes, and is what the runtime's package asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

RUNTIME = Path(__file__).parent.parent / "runtime"


def test_what_the_package_needs_to_build_is_pinned() -> None:
    text = (RUNTIME / "build-requirements.txt").read_text()
    pinned = {canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==([\w.]+) \\$", text, re.M)}
    wanted = tomllib.loads((RUNTIME / "pyproject.toml").read_text())["build-system"]["requires"]
    for requirement in map(Requirement, [*wanted, "cmake>=3.25", "ninja"]):
        assert pinned[canonicalize_name(requirement.name)] in requirement.specifier
    for entry in re.split(r"^(?=[\w.-]+==)", text, flags=re.M)[1:]:
        assert "--hash=sha256:" in entry
