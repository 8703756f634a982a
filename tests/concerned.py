"""`make check`: the tests that concern a change, nearest first, for as long as HIPDNN_CHECK_S says. A pytest plugin, and a command for lit.

A change is what git sees: files that are not committed, or else those of the last commit. A test concerns the room of a changed file if it
imports from that room, itself or through modules of the tests; and a changed folder of the runtime if it has the folder's name in its path.
What is left, and what is marked slow, is left to `make test`.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
_STARTED = time.monotonic()
_LIMIT_S = float(os.environ.get("HIPDNN_CHECK_S", "100"))
_EVERYWHERE = ("hipdnn_mlir", "hipdnn_mlir_runtime.errors")
"""What every test imports, and so says nothing of what it is about."""


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@cache
def changed() -> tuple[str, ...]:
    """The changed files, as paths from the root."""
    here = _git("diff", "--name-only", "HEAD") + _git("ls-files", "--others", "--exclude-standard")
    return tuple(here or _git("diff", "--name-only", "HEAD~1"))


@cache
def _imports(path: Path) -> frozenset[str]:
    """Modules that a module of the tests imports, with those of the tests that it imports in turn."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            found.add(name)
            module = TESTS / (name.replace(".", "/") + ".py")
            if module.is_file() and module != path:
                found |= {f"tests/{module.relative_to(TESTS)}", *_imports(module)}
    return frozenset(found - {*_EVERYWHERE})


def distance(test: Path) -> int | None:
    """How near a test is to the change: 0 if it is changed itself, 1 if its helpers are or it imports what is, 2 if the room; else None."""
    name = f"tests/{test.relative_to(TESTS)}"
    imports = _imports(test)
    found: list[int] = []
    for file in changed():
        module = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        room = ".".join(module.split(".")[:2])
        folders = Path(file).parts[2:-1] or ("session",)
        is_of_runtime = file.startswith("runtime/") and any(part in name for part in folders)
        is_of_room = file.startswith("hipdnn_mlir/") and any(imported.startswith(room) for imported in imports)
        if file == name:
            found.append(0)
        elif file in imports or module in imports:
            found.append(1)
        elif is_of_room or is_of_runtime:
            found.append(2)
    return min(found, default=None)


def lit_folders() -> Iterator[str]:
    """Folders of lit tests that are changed, or whose pass is."""
    for folder in sorted((ROOT / "lit_tests").iterdir()):
        name = folder.name.removeprefix("hipdnn-").replace("-", "_")
        if any(f.startswith(f"lit_tests/{folder.name}/") or f == f"hipdnn_mlir/passes/{name}.py" for f in changed()):
            yield f"lit_tests/{folder.name}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what concerns the change and is quick, nearest first."""
    near = {item: distance(item.path) for item in items if item.get_closest_marker("slow") is None}
    kept = sorted((item for item, far in near.items() if far is not None), key=lambda item: near[item] or 0)
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


def pytest_runtest_setup() -> None:
    """Start no test when the time is over."""
    if time.monotonic() - _STARTED > _LIMIT_S:
        pytest.skip(f"the {_LIMIT_S:g} s of `make check` are over: left to `make test`")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A change that no test concerns is no failure."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


if __name__ == "__main__":
    sys.stdout.write(" ".join(lit_folders()))
