"""Facts about a program as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hipdnn_mlir_runtime.atomic_file import write_text

from .document import document
from .facts import Facts, read_facts

_SCRIPTS = (
    "base.js",
    "program.js",
    "graph.js",
    "search.js",
    "detail.js",
    "memory.js",
    "tables.js",
    "controls.js",
    "start.js",
)
_SECTIONS = {"graph": "Graph", "memory": "Memory", "steps": "Steps", "weights": "Weights", "about": "About"}


def page_html(facts: Facts) -> str:
    """The page about a program."""
    return document(facts.model, "program.html", _SCRIPTS, facts.to_dict(), _SECTIONS)


def write_page(
    program: str | Path,
    output: str | Path,
    *,
    sizes: Mapping[str, int] | None = None,
    times_us: Sequence[float] | None = None,
    torch_ir: Mapping[str, str] | None = None,
) -> Facts:
    """Write the page about a program file.

    Args:
        program: The `.hipdnn` file.
        output: The HTML file to write.
        sizes: A number per dynamic dimension; one with buckets is shown at the largest where nothing is given.
        times_us: Microseconds per step, as a profile has them.
        torch_ir: What `torch_ir.region_texts` returns for the program's model; without it the page shows no IR.

    Returns:
        What the page shows.

    Raises:
        ProgramError: The file is not a program, is broken, or has another format.
        PlanRefusedError: The target's library is on this machine, and refuses graphs.
        ModelError: A size is open or unknown; the times are not one per step.
        HipdnnMlirError: The page cannot be written.
    """
    facts = read_facts(Path(program), sizes=sizes, times_us=times_us, torch_ir=torch_ir)
    write_text(output, page_html(facts))
    return facts
