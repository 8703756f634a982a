"""Every node test of the onnx package that passes standalone passes in ONNX Runtime, each of its nodes on the provider."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from onnx.backend.test.loader import load_node_model_tests

from onnx_backend import report

pytestmark = pytest.mark.slow

LEAST_PASSED = 690
"""By any ONNX Runtime that is supported; it runs more than the standalone path where it writes functions out as simpler nodes."""


@pytest.fixture(scope="module")
def standalone() -> report.Results:
    return report.run_all()


@pytest.fixture(scope="module")
def through(standalone: report.Results, pytestconfig: pytest.Config) -> report.Results:
    found = report.run_through_onnxruntime(report.case_names(), workers=os.cpu_count() or 1)
    directory = pytestconfig.rootpath / "build"
    directory.mkdir(exist_ok=True)
    Path(directory, "onnx_backend_through_onnxruntime.json").write_text(json.dumps(found, indent=1))
    Path(directory, "onnx_backend_through_onnxruntime.md").write_text(
        report.compare_to_markdown(standalone, found) + "\n"
    )
    return found


def test_no_node_case_fails_when_the_provider_is_there(through: report.Results) -> None:
    failed = {name: result["reasons"] for name, result in through.items() if result["status"] == "failed"}
    assert not failed, json.dumps(failed, indent=1)


def test_node_case_passes_wholly_on_the_provider_when_it_passes_standalone(
    standalone: report.Results, through: report.Results
) -> None:
    """But for models that this ONNX Runtime cannot read, one that is nothing but a constant, and Scan, which keeps its body to itself."""
    scans = {case.name for case in load_node_model_tests() if any(n.op_type == "Scan" for n in case.model.graph.node)}
    found = {n: r["status"] for n, r in report.missing(standalone, through).items() if r["status"] != "refused"}
    assert {name: status for name, status in found.items() if name not in scans} == {"test_constant": "removed"}
    assert {found[name] for name in scans & found.keys()} == {"cpu"}


def test_enough_node_cases_pass_when_all_are_run(standalone: report.Results, through: report.Results) -> None:
    passed = sum(result["status"] == "passed" for result in through.values())
    assert passed >= LEAST_PASSED, report.compare_to_markdown(standalone, through)
