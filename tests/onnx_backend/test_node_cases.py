"""Every node test of the onnx package either passes wholly in one program or is rejected with a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onnx_backend import report
from onnx_backend.coverage import to_coverage

pytestmark = pytest.mark.slow

LEAST_PASSED = 1400


@pytest.fixture(scope="module")
def results(pytestconfig: pytest.Config) -> report.Results:
    found = report.run_all()
    directory = pytestconfig.rootpath / "build"
    directory.mkdir(exist_ok=True)
    Path(directory, "onnx_backend.json").write_text(json.dumps(found, indent=1))
    Path(directory, "onnx_backend.md").write_text(report.to_markdown(found) + "\n")
    return found


def test_no_node_case_fails_when_all_are_run(results: report.Results) -> None:
    failed = {name: result["reasons"] for name, result in results.items() if result["status"] == "failed"}
    assert not failed, json.dumps(failed, indent=1)


def test_enough_node_cases_pass_when_all_are_run(results: report.Results) -> None:
    passed = sum(result["status"] == "passed" for result in results.values())
    assert passed >= LEAST_PASSED, report.to_markdown(results)


def test_coverage_page_is_current(results: report.Results, pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / "docs" / "coverage.md").read_text()
    assert page == to_coverage(results), "run: python tests/onnx_backend/report.py --coverage docs/coverage.md"


def test_every_rejection_names_a_reason_when_all_are_run(results: report.Results) -> None:
    unexplained = [name for name, result in results.items() if result["status"] == "rejected" and not result["reasons"]]
    assert not unexplained
