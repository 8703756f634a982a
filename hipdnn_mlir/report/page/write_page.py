"""Facts about a program as one HTML file: no address in it leads anywhere else."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from string import Template

from hipdnn_mlir_runtime.errors import HipdnnMlirError

from .facts import Facts, read_facts
from .layout import NODE_HEIGHT, NODE_WIDTH

SCRIPTS = ("base.js", "graph.js", "search.js", "detail.js", "memory.js", "tables.js", "start.js")
"""In the order in which the page runs them."""


def page_html(facts: Facts) -> str:
    """The page: template, style, scripts and data in one text."""
    script = "\n".join(_part(name) for name in SCRIPTS)
    data = {**facts.to_dict(), "node_width": NODE_WIDTH, "node_height": NODE_HEIGHT}
    return Template(_part("page.html")).substitute(
        title=html.escape(_printable(facts.model)),
        style=_part("page.css"),
        script=f'(() => {{\n"use strict";\n{script}}})();',
        data=_in_script(json.dumps(data, separators=(",", ":"))),
    )


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
    try:
        Path(output).write_text(page_html(facts), encoding="utf-8")
    except OSError as error:
        raise HipdnnMlirError(
            f"cannot write: {error.strerror}", where=str(output), hint="choose another folder"
        ) from error
    return facts


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _in_script(text: str) -> str:
    """JSON that cannot end the script element it stands in. `json` writes all beyond ASCII as escapes."""
    return text.replace("<", "\\u003c")


def _printable(text: str) -> str:
    """A name as UTF-8 can hold it."""
    return text.encode("utf-8", "replace").decode()
