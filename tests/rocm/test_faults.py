"""A library with a broken engine, or no memory: the cases that meet it fail with their cause, and the run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hipdnn_mlir.codegen.core import link
from onnx_backend.report import Limits, run_cases
from rocm.report import causes
from rocm.report.cases import Suite

if TYPE_CHECKING:
    from rocm.report.suites import Samples

pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(link.find_linker() is None, reason="no ld.lld of LLVM 15 or newer: pip install '.[gpu-amd]'"),
]
BENCH = Path(__file__).parents[2] / "bench" / "gpu"
BROKEN = "HOST_ONEDNN_ENGINE"
LIMITS = Limits(case_s=2.5)


@pytest.fixture(scope="module")
def samples() -> Samples:
    """Two matmuls, compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        from rocm.report.suites import Samples

    made = Samples("gfx942", "hip", "aten.mm(f", 1, is_quick=False)
    made.pack(Limits())
    return made


@pytest.fixture
def fault(faulty_libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The libraries, and no refusals of earlier runs."""
    variables = {"LD_LIBRARY_PATH": faulty_libraries, "FAKE_HIP_RECORD": tmp_path, "XDG_CACHE_HOME": tmp_path}
    variables["PYTHONPATH"] = BENCH
    for name, value in ({"FAKE_GCN_ARCH": "gfx942"} | variables).items():
        monkeypatch.setenv(name, str(value))
    return monkeypatch


def found(suite: Suite) -> list[str]:
    """The cause of each case that failed."""
    return [causes.cause_of(case.reason) for case in suite.with_status("failed")]


def test_without_a_fault_all_pass(samples: Samples, fault: pytest.MonkeyPatch) -> None:
    assert samples.on_engine(BROKEN, "", LIMITS).counts == {"passed": 2}
    assert samples.on_engine("HOST_SDPA_ENGINE", "", LIMITS).counts == {"untaken": 2}


def test_garbage_is_wrong_values_with_their_error(samples: Samples, fault: pytest.MonkeyPatch) -> None:
    fault.setenv("FAKE_FAULT", f"garbage:{BROKEN}")
    alone = samples.on_engine(BROKEN, "", LIMITS)
    assert found(alone) == ["wrong values"] * 2
    assert "Max absolute difference among violations: " in causes.shortened(alone.cases[0].reason)
    # Where the library chooses, the plan is compared before it is used: that it was left out is told.
    rows = causes.rows([samples.run(LIMITS)])
    assert f"{BROKEN} answers wrongly" in "".join(row.message for row in rows if row.cause == "wrong values")


def test_the_plugin_of_an_engine_is_loaded_alone(
    samples: Samples, fault: pytest.MonkeyPatch, libraries_with_plugins: Path, tmp_path: Path
) -> None:
    fault.setenv("LD_LIBRARY_PATH", str(libraries_with_plugins))
    plugin = tmp_path / "libmiopen_plugin.so"
    plugin.write_bytes(b"")
    assert samples.on_engine(BROKEN, str(plugin), LIMITS).counts == {"passed": 2}
    missing = samples.on_engine(BROKEN, str(tmp_path / "missing.so"), LIMITS)
    assert "plugin_dirs" in missing.cases[0].reason


def test_models_run_on_one_engine_too(samples: Samples, fault: pytest.MonkeyPatch) -> None:
    from rocm.report.suites import models_on_engine

    limits = Limits(case_s=10)
    assert models_on_engine("gfx942", ["mlp"], BROKEN, "", limits)["mlp in f32"]["status"] == "passed"
    fault.setenv("FAKE_FAULT", f"garbage:{BROKEN}")
    (result,) = models_on_engine("gfx942", ["mlp"], BROKEN, "", limits).values()
    assert causes.cause_of(result["reasons"][0]) == "wrong values"


@pytest.mark.parametrize(("how", "cause"), [("hang", "hung"), ("crash", "crashed")])
def test_a_case_that_does_not_end_well_costs_that_case(
    how: str, cause: str, samples: Samples, fault: pytest.MonkeyPatch
) -> None:
    fault.setenv("FAKE_FAULT", f"{how}:{BROKEN}")
    alone = samples.on_engine(BROKEN, "", LIMITS)
    assert found(alone) == [cause] * 2
    fault.setenv("FAKE_FAULT", f"{how}:HOST_SDPA_ENGINE")
    assert samples.on_engine(BROKEN, "", LIMITS).counts == {"passed": 2}


def test_a_lack_of_memory_is_told(samples: Samples, fault: pytest.MonkeyPatch) -> None:
    fault.setenv("FAKE_HIP_FULL", "1")
    assert found(samples.on_engine(BROKEN, "", LIMITS)) == ["out of memory"] * 2


HANGS = ("-c", "import sys, time\nprint('ready', flush=True)\nfor line in sys.stdin: time.sleep(60)")
CRASHES = ("-c", "import os, sys\nprint('ready', flush=True)\nsys.stdin.readline()\nos.abort()")
HALF = ("-c", "import os, sys\nprint('ready', flush=True)\nsys.stdin.readline()\nos.write(1, b'{\"sta')\nos.abort()")


def test_a_device_that_answers_nothing_any_more_ends_the_suite() -> None:
    results = run_cases("abcd", 1, HANGS, limits=Limits(case_s=0.2, hangs=2))
    assert [result["status"] for result in results.values()] == ["failed", "failed", "unrun", "unrun"]
    assert results["d"]["reasons"] == ["2 cases in a row had hung"]


@pytest.mark.parametrize("command", [CRASHES, HALF])
def test_a_crash_amid_an_answer_is_a_crash_of_its_case(command: tuple[str, str]) -> None:
    results = run_cases("ab", 1, command)
    assert [causes.cause_of(result["reasons"][0]) for result in results.values()] == ["crashed", "crashed"]


def test_no_case_is_begun_after_the_time() -> None:
    results = run_cases("ab", 1, HANGS, limits=Limits(case_s=0.2, until=0))
    assert {result["status"] for result in results.values()} == {"unrun"}
