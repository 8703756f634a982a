"""The report's parts by themselves: causes, what is private, what a quick run takes."""

from __future__ import annotations

import ctypes
import getpass
import json
import os
import pwd
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hipdnn_mlir_runtime.session.devices import DeviceInfo
from onnx_backend.report import Limits
from rocm.report import archive, causes, conformance, private, quick, timing
from rocm.report.cases import Case, Suite
from rocm.report.machine import Machine
from rocm.report.page import Report
from rocm.report.private import Private

BENCH = Path(__file__).parents[2] / "bench" / "gpu"


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
        ("compile refused", 1, False),
        ("refused by the library", 1, False),
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
        ("AssertionError: Items are not equal: ACTUAL: 1 DESIRED: 2", "wrong values"),
        ("AssertionError: Arrays are not equal Output 0 has incorrect shape", "wrong values"),
        ("compile: AssertionError: a program has one entry", "compiler failed"),
        ("run: AssertionError", "other"),
        ("compile: ModelError: the type was refused", "compile refused"),
        ("run: PlanRefusedError: NOT_SUPPORTED", "refused by the library"),
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
    hidden = Private()
    for text in (
        "/opt/rocm/lib/libMIOpen.so",
        "-I/opt/rocm/include",
        "file:///usr/lib/x.so",
        "'/opt/rocm/share/a b'",
        "/dev",
        "build/x/y and ./x/y",
        "ours / this 0.98, 3 /4, (a + b)/size, f32[?/size]",
        "</tag> // text",
        "/dev/kfd",
        "sample 1 x(f32[1/2])",
        "N/A",
        "https://rocm.docs.amd.com/x",
    ):
        assert hidden.without(text) == text
    assert hidden.without("open /data/of/some/model.onnx failed") == "open <path>/model.onnx failed"
    assert hidden.without("amd, hip and host stay") == "amd, hip and host stay"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cc -I/data/secret/include -L/data/secret/lib", "cc -I<path>/include -L<path>/lib"),
        ("-isystem/data/secret/include", "-isystem<path>/include"),
        ("file:///data/secret/x.onnx", "file:<path>/x.onnx"),
        ("//data//secret//x", "<path>/x"),
        ("in /scratch:", "in <path>:"),
        ("in '/scratch'", "in '<path>'"),
        ("\x1b[1m/data/secret/x\x1b[0m", "<path>/x"),
        (r"\x1b[1m/data/secret/x: bad\n/data/secret/y", r"<path>/x: bad\n<path>/y"),
        ("'/data/My Secret/dir/x'", "'<path>/x'"),
        ("b'/data/My Secret/dir/x'", "b'<path>/x'"),
        ('"--model=/data/My Secret/x y.onnx" and', '"--model=<path>/x y.onnx" and'),
        ("'/data/My Secret/di ...", "'<path>/di ..."),
        (r"/data/My\ Secret/dir/x", "<path>/x"),
        ("2>/data/secret/log", "2><path>/log"),
        ("LD_LIBRARY_PATH=/data/a:/data/secret/b", "LD_LIBRARY_PATH=<path>/a:<path>/b"),
    ],
)
def test_paths_are_found_in_every_dress(text: str, expected: str) -> None:
    assert Private().without(text) == expected
    assert Private().without(expected) == expected


def test_each_line_of_a_log_is_without_what_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTNAME", "tower-of-ivory")
    log = "first\n/data/secret/one\n\ttower-of-ivory: two\n/scratch\n"
    made = Report("host", Machine((), (), ""), [Suite("a suite", [Case("x", "failed", log, log)])])
    archive.write(tmp_path / "report", made.to_markdown(), {"/data/secret/key": 1, **made.to_dict()}, made.suites)
    for name in ("report.md", "report.json", "logs/a-suite.log"):
        text = (tmp_path / "report" / name).read_text()
        assert not [word for word in ("secret", "ivory", "scratch") if word in text], name
    (case,) = json.loads((tmp_path / "report" / "report.json").read_text())["suites"][0]["cases"]
    assert case["log"] == "first\n<path>/one\n\t<machine>: two\n<path>\n"
    assert Private().within(made).suites[0].cases[0].log == case["log"]


def test_a_user_without_an_account_and_a_home_is_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "LOGNAME", "USER", "LNAME", "USERNAME", "SUDO_USER"):
        monkeypatch.delenv(name, raising=False)
    assert Private().without("open /data/x/y") == "open <path>/y"
    assert "<home>" not in dict(private._places()).values()


def run_report(
    monkeypatch: pytest.MonkeyPatch, folder: Path, suites: Callable[[Limits], Suite], timed: Callable[..., None]
) -> Report:
    """A run of a suite and of times, in which something fails."""
    monkeypatch.syspath_prepend(BENCH)
    from rocm.report import __main__ as report_main

    reports: list[Report] = []

    def write(report: Report, *_: object) -> Path:
        reports.append(report)
        return folder

    device = DeviceInfo("host", target="host")
    monkeypatch.setattr(report_main, "look", lambda *_: Machine((), (device,), ""))
    monkeypatch.setattr(report_main, "_parts", lambda *_: [("broken", 1.0, suites)])
    monkeypatch.setattr(report_main, "_write", write)
    monkeypatch.setattr(timing, "times", timed)
    monkeypatch.setattr(sys, "argv", ["report", "--write", str(folder), "--port", "host"])
    monkeypatch.setenv("HIPDNN_LOG_LEVEL", "error")
    assert report_main._report(report_main._arguments()) == 1
    return reports[-1]


def test_no_exception_of_a_suite_or_of_times_ends_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Any:
        raise ZeroDivisionError("of this suite")

    made = run_report(monkeypatch, tmp_path, broken, broken)
    assert [suite.name for suite in made.suites] == ["broken", "times"]
    for suite in made.suites:
        (case,) = suite.cases
        assert (case.status, case.reason) == ("failed", "crash: ZeroDivisionError: of this suite")
        assert "in broken\n" in case.log


def test_a_model_whose_writer_is_killed_has_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "ended", lambda *_: subprocess.CompletedProcess([], -9, "", ""))
    (row,) = timing.times("host", ["mlp"], 1.0, Limits())
    assert (row.model, row.p50_ms, row.text) == ("mlp", None, "it cannot be made: exit status -9")


def test_a_program_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    program = tmp_path / "test_host_abi"
    program.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {tmp_path}/child\nwait\n")
    program.chmod(0o755)
    suite = conformance.conformance(program, "host", Limits(case_s=0.3, hangs=0))
    assert [(case.name, case.reason) for case in suite.cases] == [("test_host_abi", "hang: no end within 0.3 s")]
    child = Path("/proc", (tmp_path / "child").read_text().strip(), "stat")
    end = time.monotonic() + 10
    while is_running(child) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_running(child)


def is_running(stat: Path) -> bool:
    try:
        return stat.read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_library_is_looked_for_in_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(*_: object) -> None:
        raise AssertionError("opened here")

    monkeypatch.setattr(ctypes, "CDLL", opened)
    missing = str(tmp_path / "missing.so")
    assert conformance._found((missing, "libm.so.6"), 30) == "libm.so.6"
    assert conformance._found((missing, "none.so"), 30) == missing


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
