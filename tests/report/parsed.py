"""Pages read as HTML: what they could load, what stands in their scripts; and names that a page must not take for markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

HOSTILE = [
    "</script><script>window.bad = 1</script>",
    "<img src=x onerror='window.bad = 1'>\"'&amp;&lt;",
    "\u202eright to left \u05e9\u05dc\u05d5\u05dd\u2028 and a line",
    "n" * 10_000,
    "$title ${data} __proto__ %00",
]


class Parsed(HTMLParser):
    """Elements, attributes that could load something, and the texts of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.elements: list[str] = []
        self.scripts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        if tag not in {"meta", "input"}:
            self.open.append(tag)
        self.links += [value or "" for name, value in attributes if name in {"src", "href", "srcset", "data", "action"}]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)


def assert_loads_nothing(page: str) -> None:
    """Check that a page is whole, and that nothing in it leads to another address."""
    parsed = Parsed(page)
    assert parsed.open == []
    assert all(link.startswith("#") for link in parsed.links)
    code = page.replace("http://www.w3.org/2000/svg", "")  # the name of a namespace, which nothing loads
    code = re.sub(r'<script id="data".*?</script>', "", code, flags=re.DOTALL)
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttpRequest|WebSocket|import\(|innerHTML|eval\(", code)
    assert "default-src 'none'" in page
