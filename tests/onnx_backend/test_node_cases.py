"""Every node test of the onnx package either passes wholly in one program or is rejected with a reason.

Those that pass standalone do so in ONNX Runtime too, each of their nodes on the provider: every twelfth case of an operator, and all of
them in `make nightly`.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from pathlib import Path

import pytest

from drawing import TIMES
from hipdnn_mlir.frontend.counted.sources import OPERATORS as COUNTED
from onnx_backend import report
from onnx_backend.coverage import operators, to_coverage

pytestmark = pytest.mark.slow

COVERAGE = Path(__file__).parents[2] / "docs" / "coverage.md"
LEAST_PASSED = 1600
LEAST_PASSED_IN_ONNXRUNTIME = 690 if TIMES else 100
"""By any ONNX Runtime that is supported; it runs more than the standalone path where it writes functions out as simpler nodes."""


_FEW_BITS = re.compile(r"(INT|FLOAT)[24]|FNUZ|E8M0", re.IGNORECASE)
"""Cases with types of few bits, in whose place programs have codes: the provider leaves them to ONNX Runtime, which packs them."""
OPERATORS = re.findall(r"^\| ([\w ]+) \| \d", COVERAGE.read_text(), re.MULTILINE)
"""From the page, which a test compares with the cases: reading all of these would make every collection of tests slower."""


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> report.Results:
    """The results of all cases; where tests of some operators alone were chosen, of theirs."""
    chosen = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    if all(chosen):
        wanted = {spec.params["operator"] for spec in chosen}
        names = [name for name, operator in operators().items() if operator in wanted]
        return report.run_cases(names, os.cpu_count() or 1)
    found = report.run_all()
    directory = pytestconfig.rootpath / "build"
    directory.mkdir(exist_ok=True)
    Path(directory, "onnx_backend.json").write_text(json.dumps(found, indent=1))
    Path(directory, "onnx_backend.md").write_text(report.to_markdown(found) + "\n")
    return found


@pytest.mark.parametrize("operator", OPERATORS)
def test_node_cases_of_an_operator_pass_or_are_rejected_with_a_reason(operator: str, results: report.Results) -> None:
    of_operator = {name: results[name] for name, known in operators().items() if known == operator}
    assert of_operator
    wrong = {
        name: result
        for name, result in of_operator.items()
        if result["status"] == "failed" or (result["status"] == "rejected" and not result["reasons"])
    }
    assert not wrong, json.dumps(wrong, indent=1)


def test_enough_node_cases_pass_when_all_are_run(results: report.Results) -> None:
    passed = sum(result["status"] == "passed" for result in results.values())
    assert passed >= LEAST_PASSED, report.to_markdown(results)


def test_coverage_page_is_current(results: report.Results) -> None:
    assert COVERAGE.read_text() == to_coverage(results), (
        "run: python tests/onnx_backend/report.py --coverage docs/coverage.md"
    )


@pytest.fixture(scope="module")
def through(results: report.Results, pytestconfig: pytest.Config) -> report.Results:
    names: defaultdict[str, list[str]] = defaultdict(list)
    for name in report.case_names():
        names[operators()[name]].append(name)
    chosen = [name for of_operator in names.values() for name in of_operator[:: 1 if TIMES else 12]]
    found = report.run_through_onnxruntime(chosen, workers=os.cpu_count() or 1)
    directory = pytestconfig.rootpath / "build"
    directory.mkdir(exist_ok=True)
    Path(directory, "onnx_backend_through_onnxruntime.json").write_text(json.dumps(found, indent=1))
    Path(directory, "onnx_backend_through_onnxruntime.md").write_text(report.compare_to_markdown(results, found) + "\n")
    return found


def test_no_node_case_fails_when_the_provider_is_there(through: report.Results) -> None:
    failed = {name: result["reasons"] for name, result in through.items() if result["status"] == "failed"}
    assert not failed, json.dumps(failed, indent=1)


def test_node_case_passes_wholly_on_the_provider_when_it_passes_standalone(
    results: report.Results, through: report.Results
) -> None:
    """But for models that this ONNX Runtime cannot read, types of few bits, rows that data decides (ADR 54), and one that is a constant."""
    missing = {n: r["status"] for n, r in report.missing(results, through).items() if r["status"] != "refused"}
    found = {name: status for name, status in missing.items() if not _FEW_BITS.search(name)}
    counted = {name for name in found if operators()[name] in COUNTED}
    assert {found.pop(name) for name in counted} == {"cpu"}
    assert found == {"test_constant": "removed"}


def test_enough_node_cases_pass_in_onnxruntime(results: report.Results, through: report.Results) -> None:
    passed = sum(result["status"] == "passed" for result in through.values())
    assert passed >= LEAST_PASSED_IN_ONNXRUNTIME, report.compare_to_markdown(results, through)
