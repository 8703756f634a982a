"""The host library's threads, through the entry points of OpenMP, under the names by which its copy of oneDNN calls them."""

import ctypes
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from host_engines.host_graph import library_path

PART = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@pytest.fixture(scope="module")
def openmp() -> ctypes.CDLL:
    library = ctypes.CDLL(str(library_path()))
    library.HOMP_parallel.argtypes = [PART, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    library.HOMP_loop_static_start.argtypes = [*[ctypes.c_long] * 4, *[ctypes.c_void_p] * 2]
    library.HOMP_loop_static_start.restype = ctypes.c_bool
    library.HOMP_loop_static_next.argtypes = [ctypes.c_void_p] * 2
    library.HOMP_loop_static_next.restype = ctypes.c_bool
    return library


def run(openmp: ctypes.CDLL, count: int, body: Callable[[], None]) -> None:
    """Runs `body` once per part; what it raises is raised here."""
    errors: list[BaseException] = []

    def part(_: object) -> None:
        try:
            body()
        except BaseException as error:  # noqa: BLE001 - carried over the C frame
            errors.append(error)

    openmp.HOMP_parallel(PART(part), None, count, 0)
    if errors:
        raise errors[0]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_part_runs_once(openmp: ctypes.CDLL, count: int) -> None:
    seen: list[tuple[int, int]] = []
    for _ in range(20):
        run(openmp, count, lambda: seen.append((openmp.Hmp_get_thread_num(), openmp.Hmp_get_num_threads())))
    assert Counter(seen) == {(part, count): 20 for part in range(count)}


def test_outside_of_regions_there_is_one_part(openmp: ctypes.CDLL) -> None:
    assert (openmp.Hmp_get_thread_num(), openmp.Hmp_get_num_threads(), openmp.Hmp_in_parallel()) == (0, 1, 0)


def test_parts_wait_for_each_other_at_a_barrier(openmp: ctypes.CDLL) -> None:
    count, rounds = 4, 5
    arrived = [0] * rounds

    def body() -> None:
        for turn in range(rounds):
            arrived[turn] += 1
            openmp.HOMP_barrier()
            assert arrived[turn] == count
            openmp.HOMP_barrier()

    run(openmp, count, body)


def test_a_region_within_a_region_has_one_part(openmp: ctypes.CDLL) -> None:
    inner: list[tuple[int, int, int, int]] = []

    def body() -> None:
        outer = openmp.Hmp_get_thread_num()
        run(
            openmp,
            4,
            lambda: inner.append(
                (outer, openmp.Hmp_get_thread_num(), openmp.Hmp_get_num_threads(), openmp.Hmp_in_parallel())
            ),
        )
        assert openmp.Hmp_get_thread_num() == outer

    run(openmp, 3, body)
    assert sorted(inner) == [(part, 0, 1, 1) for part in range(3)]


@pytest.mark.parametrize(
    ("first", "last", "step", "chunk"), [(0, 17, 1, 0), (0, 17, 1, 2), (5, 50, 7, 3), (20, 0, -3, 0), (3, 3, 1, 0)]
)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_static_loop_covers_its_iterations(
    openmp: ctypes.CDLL, count: int, first: int, last: int, step: int, chunk: int
) -> None:
    covered: list[int] = []

    def body() -> None:
        start, end = ctypes.c_long(), ctypes.c_long()
        pair = ctypes.byref(start), ctypes.byref(end)
        more = openmp.HOMP_loop_static_start(first, last, step, chunk, *pair)
        while more:
            covered.extend(range(start.value, end.value, step))
            more = openmp.HOMP_loop_static_next(*pair)
        openmp.HOMP_loop_end_nowait()

    run(openmp, count, body)
    assert sorted(covered) == sorted(range(first, last, step))


def test_several_callers_share_the_threads(openmp: ctypes.CDLL) -> None:
    def caller(_: int) -> list[int]:
        seen: list[int] = []

        def body() -> None:
            openmp.HOMP_barrier()
            seen.append(openmp.Hmp_get_thread_num())

        for _ in range(30):
            run(openmp, 3, body)
        return sorted(seen)

    with ThreadPoolExecutor(6) as pool:
        for seen in pool.map(caller, range(6)):
            assert seen == sorted(list(range(3)) * 30)
