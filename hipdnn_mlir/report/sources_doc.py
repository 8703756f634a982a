"""The tables of docs/amd.md about the rules of AMD's engines: where they were read, what is not used. Run as a program, it writes them."""

from collections.abc import Callable
from pathlib import Path

from ..targets.rocm_unused import UNUSED
from ..targets.sources import Source
from ..targets.table import AMD, FUSILLI, find_target
from .options_doc import between


def sources() -> dict[tuple[str, str], list[Source]]:
    """(Engine, repository and folder) -> where its rules were read."""
    found: dict[tuple[str, str], list[Source]] = {}
    for name in AMD:
        for engine in find_target(name + FUSILLI).engines:
            for source in engine.sources:
                places = found.setdefault((engine.name, f"{source.repository}, {source.folder}"), [])
                if source not in places:
                    places.append(source)
    return found


def table() -> str:
    """A row per engine and folder."""
    rows = ["| engine | repository, folder | files | read |", "|---|---|---|---|"]
    for (engine, place), parts in sources().items():
        files = dict.fromkeys(file for part in parts for file in part.files)
        rows.append(
            f"| `{engine}` | `{place}` | {', '.join(f'`{file}`' for file in files)} | {min(p.read for p in parts)} |"
        )
    return "\n".join(rows)


def unused() -> str:
    """A row for each thing that a provider takes and programs leave to generated kernels."""
    rows = ["| provider's | why it is not used | read in |", "|---|---|---|"]
    for row in UNUSED:
        places = "; ".join(
            f"`{source.folder.removeprefix('dnn-providers/')}`: {', '.join(f'`{file}`' for file in source.files)} ({source.read})"
            for source in row.sources
        )
        rows.append(f"| {row.what} | {row.why} | {places} |")
    return "\n".join(rows)


def tables() -> str:
    """Both, the second under a heading of its own."""
    intro = "Providers take more than programs use. It is left to generated kernels, where these are as good:"
    return f"{table()}\n\n### What is left to generated kernels\n{intro}\n\n{unused()}"


MADE: dict[str, tuple[str, str, Callable[[], str]]] = {
    "docs/amd.md": ("<!-- sources: generated -->", "<!-- end of sources -->", tables),
}
"""File -> the lines before and after what is made, and what makes it."""


if __name__ == "__main__":
    for name, made in MADE.items():
        Path(name).write_text(between(Path(name).read_text(), *made))
