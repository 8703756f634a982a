"""The pages of caches: which are free, and which a text has."""

from __future__ import annotations

from collections.abc import Iterable

SPARE = 0
"""The page that no text has: rows of a batch without a text, and padding, write to it."""


class PagePool:
    """Pages of one size. For one thread at a time.

    Attributes:
        count: how many pages texts can have.
        page_rows: tokens of one page.

    Args:
        count: how many pages texts can have.
        page_rows: tokens of one page.
    """

    def __init__(self, count: int, page_rows: int) -> None:
        self.count, self.page_rows = count, page_rows
        self._free = list(range(count, SPARE, -1))

    @property
    def in_use(self) -> int:
        """How many pages texts have."""
        return self.count - len(self._free)

    @property
    def free(self) -> int:
        """How many pages are left."""
        return len(self._free)

    def needed(self, tokens: int) -> int:
        """How many pages so many tokens take."""
        return -(-tokens // self.page_rows)

    def extend(self, pages: list[int], tokens: int) -> bool:
        """Give a text the pages that it lacks for so many tokens, if there are as many; whether it has them then."""
        lacking = self.needed(tokens) - len(pages)
        if lacking > len(self._free):
            return False
        pages.extend(self._free.pop() for _ in range(lacking))
        return True

    def give_back(self, pages: Iterable[int]) -> None:
        """Take pages back."""
        self._free.extend(pages)
