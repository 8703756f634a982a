"""Rows on the CPU: together, or each by itself on a thread of its own, whichever takes less time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import hipdnn_mlir
from hipdnn_mlir.serving.rows import RowRunner, rows_of
from hipdnn_mlir_runtime import Session
from hipdnn_mlir_runtime.errors import ModelError
from serving.digits import TOLERANCE, Images, compiled, digits_of

ROWS = 21
"""With buckets of 2 and 8: ten runs apart and one of a padded row, or two together and one of five padded rows."""
TOGETHER_S = 5.0


@pytest.fixture(scope="module")
def program() -> hipdnn_mlir.Program:
    return compiled([2, 8])


@pytest.fixture(scope="module")
def images() -> Images:
    return np.random.default_rng(0).uniform(0, 1, (ROWS, 1, 8, 8)).astype(np.float32)


def seconds(runs: list[int], apart_s: float) -> Iterator[float]:
    """A clock on which rows take some time together, and another apart, which is more than three runs."""
    now = 0.0
    while True:
        before = len(runs)
        yield now
        now += TOGETHER_S if len(runs) - before <= 3 else apart_s
        yield now


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("apart_s", [1.0, 9.0])
def test_the_way_that_took_less_time_is_kept(
    monkeypatch: pytest.MonkeyPatch, program: hipdnn_mlir.Program, images: Images, threads: int, apart_s: float
) -> None:
    runs: list[int] = []
    run, expected = Session.run, digits_of(images)

    def noted(session: Session, names: None, feeds: dict[str, Images]) -> object:
        runs.append(len(feeds["image"]))
        return run(session, names, feeds)

    monkeypatch.setattr(Session, "run", noted)
    ways: list[int] = []
    with program.session(threads=threads) as session:
        rows = rows_of(session)
        assert rows is not None
        runner = RowRunner(session, rows, clock=seconds(runs, apart_s).__next__)
        for count in (*[ROWS] * (2 * RowRunner.TRIALS + 2), 1):
            runs.clear()
            np.testing.assert_allclose(runner.run({"image": images[:count]})[0], expected[:count], **TOLERANCE)
            ways.append(len(runs))
        runner.close()
    apart, together = 11, 3
    tried = ways[: 2 * RowRunner.TRIALS]
    assert sorted(tried) == [together] * RowRunner.TRIALS + [apart] * RowRunner.TRIALS
    assert ways[2 * RowRunner.TRIALS :] == [apart if apart_s < TOGETHER_S else together] * 2 + [1]


def test_a_session_opened_again_has_its_own_options(program: hipdnn_mlir.Program, images: Images) -> None:
    with program.session(threads=2) as first, first.again(threads=1) as second:
        assert (first.device.threads, second.device.threads) == (2, 1)
        for session in (first, second):
            np.testing.assert_allclose(session.run(None, {"image": images[:8]})[0], digits_of(images)[:8], **TOLERANCE)
    with pytest.raises(ModelError, match="the session is closed"):
        first.again()
