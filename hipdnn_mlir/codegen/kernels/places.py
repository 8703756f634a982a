"""Where rows of caches lie: counts that are data, and pages that a table names."""

from collections.abc import Callable
from dataclasses import dataclass

from ..core.builder import KernelBuilder, Value
from ..core.elements import bits_type
from ..core.kernel import Operand


def nearest_place(b: KernelBuilder, places: Operand, base: Value, batch: Value, most: int) -> Value:
    """A number of i32 or i64 that is one of the batch's, or that of all, as a position: the nearest one from zero to `most`."""
    offset = b.mul(batch, places.strides[0]) if places.dims[0] > 1 else 0
    return _nearest(b, places, base, offset, most)


def _nearest(b: KernelBuilder, places: Operand, base: Value, offset: Value, most: int) -> Value:
    kind = bits_type(b, places.dtype.bytes)
    (value,) = b.load(base, offset, kind)
    zero, limit = b.constant(0, kind), b.constant(most, kind)
    value = b.select(b.compare("slt", value, zero), zero, value)
    value = b.select(b.compare("sgt", value, limit), limit, value)
    if kind == b.position_type:
        return value
    return b.op("arith.trunci" if kind == b.i64 else "arith.extui", [value], b.position_type)


@dataclass(frozen=True)
class Pages:
    """Pages of a cache [pages, heads, rows, d], and the table [batch, pages of a sequence] of i32 that says which ones a sequence has.

    Attributes:
        cache: the pages.
        table: the table.
        base: where it lies.
    """

    cache: Operand
    table: Operand
    base: Value

    @property
    def rows(self) -> int:
        """Rows that a sequence can have."""
        return self.table.dims[1] * self.page_rows

    @property
    def page_rows(self) -> int:
        """Rows of a page."""
        return self.cache.dims[2]

    def find(self, b: KernelBuilder, batch: Value, row: Value) -> tuple[Value, Value]:
        """The page in which a row of a sequence lies, and the row of it; a page that there is not becomes the nearest one."""
        return self._page(b, batch, b.div(row, self.page_rows)), b.mod(row, self.page_rows)

    def _page(self, b: KernelBuilder, batch: Value, number: Value) -> Value:
        offset = b.add(b.mul(batch, self.table.strides[0]), b.mul(number, self.table.strides[1]))
        return _nearest(b, self.table, self.base, offset, self.cache.dims[0] - 1)

    def has(
        self, b: KernelBuilder, place: tuple[Value, Value], start_of: Callable[[Value], Value], count: int
    ) -> Value:
        """Whether a row of a page is one of `count` from `start_of(batch)` on, of any sequence."""
        page, page_row = place

        def of_sequence(batch: Value, found: list[Value]) -> list[Value]:
            start = start_of(batch)

            def of_page(number: Value, found: list[Value]) -> list[Value]:
                is_it = b.compare("eq", b.at(self._page(b, batch, number)), b.at(page))
                behind = b.sub(
                    b.add(b.mul(number, self.page_rows), page_row), start
                )  # one in front of the first is large
                is_inside = b.less(behind, count)
                return [b.same("arith.ori", found[0], b.same("arith.andi", is_it, is_inside))]

            last = b.div(b.add(start, count - 1), self.page_rows)
            return b.loop(b.div(start, self.page_rows), b.add(last, 1), 1, found, of_page)

        return b.loop(0, self.table.dims[0], 1, [b.constant(0, b.i1)], of_sequence)[0]
