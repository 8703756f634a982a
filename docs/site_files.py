"""What `make docs` makes of the files; mkdocs calls these functions. The site has the repository's folders, so that links are GitHub's.

README.md is the first page. Files outside docs/ that a page links to come along: pages as pages, others as they are.
"""

import re
from pathlib import Path
from urllib.parse import unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
_ITEM = re.compile(r"(?:[-*]|1\.) ")
_OF_A_LIST = re.compile(r"\s|[-*] |\d+\. |$")


def on_config(config: MkDocsConfig) -> None:
    """List the decisions, in order of their numbers."""
    pages = sorted(f"docs/adr/{path.name}" for path in (ROOT / "docs/adr").glob("[0-9]*.md"))
    decisions = next(entry["Decisions"] for entry in config.nav or () if "Decisions" in entry)
    decisions += pages


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Give files their places in the repository, beginning with README.md, and bring those that pages link to."""
    docs = [file for file in files if file.src_dir == config.docs_dir]
    wanted = ["README.md", *(f"docs/{file.src_uri}" for file in docs if not file.src_uri.endswith(".py"))]
    for file in docs:
        files.remove(file)
    while wanted:
        path = wanted.pop()
        if files.get_file_from_path(path) is None:
            files.append(File(path, str(ROOT), config.site_dir, config.use_directory_urls))
            wanted += _linked(path) if path.endswith(".md") else []


def on_page_markdown(markdown: str, **_: object) -> str:
    """Begin lists with an empty line, which Python's markdown needs and GitHub's does not."""
    lines: list[str] = []
    in_code = False
    for line in markdown.split("\n"):
        in_code ^= line.lstrip().startswith("```")
        if not in_code and _ITEM.match(line) and lines and not _OF_A_LIST.match(lines[-1]) and not _in_list(lines):
            lines.append("")
        is_plain = not in_code and "`" not in line
        lines.append(line.replace("] [", "] \\[") if is_plain else line)  # a reason and its rule, no link
    return "\n".join(lines)


def _in_list(lines: list[str]) -> bool:
    """Whether the last lines, which no empty one parts, belong to a list already."""
    for line in reversed(lines):
        if not line:
            return False
        if _ITEM.match(line):
            return True
    return False


def _linked(page: str) -> list[str]:
    """Return the files that a page links to, from the root."""
    folder = (ROOT / page).parent
    found = {(folder / unquote(link)).resolve() for link in _LINK.findall((ROOT / page).read_text())}
    return sorted(str(path.relative_to(ROOT)) for path in found if path.is_relative_to(ROOT) and path.is_file())
