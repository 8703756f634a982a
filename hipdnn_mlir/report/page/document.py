"""A page as one HTML file: no address in it leads anywhere else."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

from .layout import NODE_HEIGHT, NODE_WIDTH


def document(
    title: str,
    body: str,
    scripts: Sequence[str],
    data: Mapping[str, Any],
    links: Mapping[str, str],
) -> str:
    """The text of a page: frame, style, sections with a graph, scripts and data.

    Args:
        title: of the page; any text.
        body: the file of this package that holds the sections; ``$graph`` is where the graph goes.
        scripts: files of this package, in the order in which the page runs them.
        data: what the scripts draw, with ``layout`` and ``edges`` of the graph.
        links: section -> what a link to it is called.
    """
    script = "\n".join(map(_part, scripts))
    return Template(_part("shell.html")).substitute(
        title=html.escape(_printable(title)),
        style=_part("page.css"),
        links="\n    ".join(f'<a href="#{name}">{text}</a>' for name, text in links.items()),
        sections=Template(_part(body)).substitute(graph=_part("graph.html")),
        script=f'(() => {{\n"use strict";\n{script}}})();',
        data=_in_script(
            json.dumps({**data, "node_width": NODE_WIDTH, "node_height": NODE_HEIGHT}, separators=(",", ":"))
        ),
    )


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _in_script(text: str) -> str:
    """JSON that cannot end the script element it stands in. `json` writes all beyond ASCII as escapes."""
    return text.replace("<", "\\u003c")


def _printable(text: str) -> str:
    """A name as UTF-8 can hold it."""
    return text.encode("utf-8", "replace").decode()
