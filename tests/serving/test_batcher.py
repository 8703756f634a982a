"""Which requests run together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping

import numpy as np
import pytest

from hipdnn_mlir.serving.batcher import Batcher
from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.session.arrays import Array


class Program:
    """Doubles its rows, when it may go on; refuses rows that are negative."""

    def __init__(self) -> None:
        self.runs: list[list[float]] = []
        self.may_run = threading.Event()
        self.may_run.set()

    def __call__(self, feeds: Mapping[str, Array]) -> list[Array]:
        self.may_run.wait()
        self.runs.append(feeds["x"][:, 0].tolist())
        if (feeds["x"] < 0).any():
            raise ModelError("a negative row")
        return [2 * feeds["x"]]


def rows(*numbers: float, width: int = 1) -> dict[str, Array]:
    return {"x": np.tile(np.array(numbers, np.float32)[:, None], width)}


async def submitted(batcher: Batcher, feeds: dict[str, Array]) -> list[float]:
    (output,) = await batcher.submit(feeds, len(feeds["x"]), feeds["x"].shape[1:])
    return output[:, 0].tolist()


def test_what_waits_while_a_run_goes_on_is_the_next_run() -> None:
    program = Program()

    async def run() -> list[list[float]]:
        batcher = Batcher(program, most=4)
        program.may_run.clear()
        first = asyncio.create_task(submitted(batcher, rows(1)))
        await asyncio.sleep(0.05)
        others = [asyncio.create_task(submitted(batcher, rows(*numbers))) for numbers in ((2,), (3, 4), (5, 6), (7,))]
        await asyncio.sleep(0)
        program.may_run.set()
        found = await asyncio.gather(first, *others)
        await batcher.close()
        return found

    assert asyncio.run(run()) == [[2], [4], [6, 8], [10, 12], [14]]
    assert program.runs == [[1], [2, 3, 4, 7], [5, 6]]


def test_runs_are_filled_where_padding_costs() -> None:
    program = Program()

    async def run() -> None:
        batcher = Batcher(program, most=8, sizes=(1, 4, 8))
        program.may_run.clear()
        tasks = [asyncio.create_task(submitted(batcher, rows(number))) for number in range(7)]
        await asyncio.sleep(0.05)
        tasks += [asyncio.create_task(submitted(batcher, rows(number))) for number in range(7, 10)]
        await asyncio.sleep(0)
        program.may_run.set()
        assert await asyncio.gather(*tasks) == [[2 * number] for number in range(10)]

    asyncio.run(run())
    assert program.runs == [[0, 1, 2, 3], [4, 5, 6, 7], [8], [9]]


def test_rows_of_other_shapes_run_apart() -> None:
    program = Program()

    async def run() -> None:
        batcher = Batcher(program, most=8, wait_s=0.1)
        tasks = [submitted(batcher, rows(1, width=width)) for width in (1, 2, 1)]
        assert await asyncio.gather(*tasks) == [[2]] * 3

    asyncio.run(run())
    assert sorted(map(len, program.runs)) == [1, 2]


def test_a_request_that_fails_harms_no_other() -> None:
    program = Program()

    async def run() -> list[object]:
        batcher = Batcher(program, most=8, wait_s=0.1)
        tasks = [submitted(batcher, rows(number)) for number in (1, -2, 3)]
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert (batcher.totals.requests, batcher.totals.failed) == (3, 1)
        return found

    first, second, third = asyncio.run(run())
    assert (first, third) == ([2], [6])
    assert isinstance(second, ModelError)


def test_a_request_that_is_cancelled_leaves_the_queue() -> None:
    program = Program()

    async def run() -> None:
        batcher = Batcher(program)
        program.may_run.clear()
        first, second, third = (asyncio.create_task(submitted(batcher, rows(number))) for number in (1, 2, 3))
        await asyncio.sleep(0.05)
        assert batcher.queued == 2
        second.cancel()
        await asyncio.sleep(0)
        assert batcher.queued == 1
        program.may_run.set()
        assert await asyncio.gather(first, third) == [[2], [6]]
        with pytest.raises(asyncio.CancelledError):
            await second

    asyncio.run(run())
    assert program.runs == [[1], [3]]


def test_a_defect_of_a_run_is_told_and_others_run_on() -> None:
    def broken(feeds: Mapping[str, Array]) -> list[Array]:
        if feeds["x"][0, 0] == 1:
            raise ZeroDivisionError
        return [feeds["x"]]

    async def run() -> None:
        batcher = Batcher(broken)
        with pytest.raises(ZeroDivisionError):
            await submitted(batcher, rows(1))
        assert await submitted(batcher, rows(2)) == [2]

    asyncio.run(run())
