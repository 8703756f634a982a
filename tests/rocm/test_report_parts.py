"""The report's parts by themselves: causes, what is private, what a quick run takes."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from rocm.report import archive, causes, quick
from rocm.report.cases import Case, Suite
from rocm.report.private import Private


def suite(*cases: Case) -> Suite:
    return Suite("a suite", [*cases])


def test_equal_causes_are_one_row_with_a_count_and_an_example() -> None:
    many = [
        Case(f"case {n}", "failed", f"run: DeviceError: HIP error 2: out of memory, {n} bytes of 'x{n}' for case {n}")
        for n in range(200)
    ]
    (row,) = causes.rows([suite(*many)])
    assert (row.cause, len(row.cases)) == ("out of memory", 200)
    assert row.example == many[0].reason
    assert row.message == "DeviceError: HIP error N: out of memory, N bytes of '...' for '...'"


def test_rows_are_sorted_failures_first_then_by_cause_then_by_count() -> None:
    found = causes.rows([
        suite(
            Case("case_a", "rejected", "Foo: has no row [no-row]"),
            Case("case_b", "recovered", "matmul (-): no engine takes it"),
            Case("case_c", "failed", "crash: SIGSEGV"),
            Case("case_d", "failed", "hang: no answer within 5 s"),
            Case("case_e", "failed", "hang: no answer within 60 s"),
            Case("case_f", "failed", "AssertionError: Not equal to tolerance rtol=0.1"),
            Case("case_g", "unrun", "no time was left"),
            Case("case_h", "passed", log="g_0123456789abcdef (matmul): X answers wrongly: up to 0.5; it is left out\nother"),
        )
    ])  # fmt: skip
    assert [(row.cause, len(row.cases), row.is_failure) for row in found] == [
        ("wrong values", 1, True),
        ("hung", 2, True),
        ("crashed", 1, True),
        ("wrong values", 1, False),
        ("refused by the library", 1, False),
        ("compile refused", 1, False),
        ("not run", 1, False),
    ]
    assert found[3].message == "a graph (matmul): X answers wrongly: up to N; it is left out"


def test_numpys_ways_to_say_that_arrays_differ_are_one_row() -> None:
    head = "AssertionError: Not equal to tolerance rtol=1e-05, atol=1e-06 Mismatched elements: 2 / 4 (50%)"
    tail = (
        "Max absolute difference among violations: 3.5 Max relative difference among violations: 2. ACTUAL: array([1.])"
    )
    places = "[0, 1]: 1.0 (ACTUAL), 2.0 (DESIRED)"
    found = causes.rows([
        suite(
            Case("case_a", "failed", f"run: {head} First 5 mismatches are at indices: {places} {tail}"),
            Case("case_b", "failed", f"{head} Mismatch at index: {places} {tail}"),
            Case("case_c", "failed", f"{head} Mismatch at indices: [1]: True (ACTUAL), False (DESIRED)"),
            Case("case_d", "failed", "AssertionError: Not equal to tolerance rtol=0.1, atol=0 nan location mismatch: x"),
        )
    ])  # fmt: skip
    assert [(len(row.cases), row.message) for row in found] == [
        (3, "AssertionError: Not equal to tolerance"),
        (1, "AssertionError: Not equal to tolerance N location mismatch"),
    ]
    short = causes.shortened(found[0].example)
    assert short.endswith(
        "2 / 4 (50%) Max absolute difference among violations: 3.5 Max relative difference among violations: 2."
    )


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("crash: SIGABRT | std::bad_alloc", "crashed"),
        ("the process ended by signal 11, Segmentation fault", "crashed"),
        ("compile: DeviceError: port 'hip': hipMalloc: HIP error 2: out of memory", "out of memory"),
        ("compile: DeviceError: hipModuleLoadData: HIP error 209: no kernel image", "not loadable"),
        ("DeviceError: port 'hip': cannot open libamdhip64.so", "not loadable"),
        ("run: DeviceError: hipStreamSynchronize: HIP error 719: unspecified launch failure", "device error"),
        ("compile: PassError: convert-x: failed", "compiler failed"),
        ("off by nan, at most 1e-03", "wrong values"),
        ("got 3, expected 2", "other than the interface says"),
        ("whatever", "other"),
    ],
)
def test_a_message_has_a_cause(reason: str, cause: str) -> None:
    assert causes.cause_of(reason) == cause


WRITE = """
import os, socket, sys
from pathlib import Path
from rocm.report import archive
from rocm.report.cases import Case, Suite
private = sys.argv[2:]
texts = [*private, str(Path.home() / "models" / "m.onnx"), f"{private[0]}@{private[1]}:/srv/{private[0]}/x y", os.getcwd()]
texts += [f"/home/{private[0]}/.cache/plan: bad", f"file:/data/{private[0]}/lib.so", f"<{private[0].upper()}>"]
page = "\\n".join(texts)
suite = Suite("a suite", [Case(text, "failed", text, log=text) for text in texts])
archive.write(Path(sys.argv[1]), page, {"texts": texts}, [suite])
"""


def test_the_archive_has_no_name_of_the_user_or_the_machine_and_no_home(tmp_path: Path) -> None:
    user, host = "wilhelmina", "machine-of-wilhelmina"
    home = tmp_path / "houses" / "wilhelmina-secret"
    home.mkdir(parents=True)
    variables = {"HOME": str(home), "USER": user, "LOGNAME": user, "HOSTNAME": host}
    mine = {user, host, str(home), getpass.getuser(), socket.gethostname(), str(Path.home())}
    command = [sys.executable, "-P", "-c", WRITE, str(tmp_path / "report"), user, host, *sorted(mine)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])} | variables
    subprocess.run(command, env=environment, check=True)
    told = b""
    with tarfile.open(tmp_path / "report.tar.gz") as packed:
        assert {entry.name for entry in packed} == {
            f"rocm-report/{name}" for name in ("report.md", "report.json", "logs/a-suite.log")
        }
        for entry in packed:
            assert (entry.uname, entry.gname, entry.uid) == ("", "", 0)
            file = packed.extractfile(entry)
            assert file is not None
            told += file.read()
    for secret in mine | {str(tmp_path), "/srv/", "/data/", "/home/"}:
        assert secret.lower().encode() not in told.lower(), secret
    assert b"<home>/models/m.onnx" in told


def test_paths_of_the_system_stay_and_others_keep_their_last_part() -> None:
    private = Private()
    for text in (
        "/opt/rocm/lib/libMIOpen.so",
        "/dev/kfd",
        "sample 1 x(f32[1/2])",
        "N/A",
        "https://rocm.docs.amd.com/x",
    ):
        assert private.without(text) == text
    assert private.without("open /data/of/some/model.onnx failed") == "open <path>/model.onnx failed"
    assert private.without("amd, hip and host stay") == "amd, hip and host stay"


def test_a_report_without_logs_is_written_twice_in_one_place(tmp_path: Path) -> None:
    for page in ("one", "two"):
        packed = archive.write(tmp_path / "deep" / "report", page, {}, [])
    assert (tmp_path / "deep" / "report" / "report.md").read_text() == "two"
    assert packed == tmp_path / "deep" / "report.tar.gz"


def test_a_quick_run_has_one_case_of_each_kind() -> None:
    names = [
        f"sample {n:03d} aten.{op}({kind}[2x3])"
        for n, (op, kind) in enumerate((o, k) for o in "abc" for k in ("f32", "f16"))
    ]
    chosen = quick.representative([*names, "sample 009 aten.a(f32[9])"], quick.sample_kind)
    assert sorted(chosen) == names
    assert chosen == quick.representative(names, quick.sample_kind)
    assert quick.sample_kind("sample 007 hipdnn.Range(i64[],i64[])-x") == ("hipdnn.Range", "i64")


def test_time_that_a_part_leaves_is_shared_by_those_after_it() -> None:
    budget = quick.Budget(100, [1, 1, 2])
    now = time.monotonic()
    assert budget.until() - now == pytest.approx(25, abs=1)
    assert budget.until() - now == pytest.approx(100 / 3, abs=1)
    assert budget.until() - now == pytest.approx(100, abs=1)
    assert quick.Budget(float("inf"), [1]).until() == float("inf")
