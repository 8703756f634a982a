"""Every refusal on the page of conformance is of one class, and what fits none of those that stay is shown as work."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import onnx
import pytest

from onnx_backend.refusals import BY_DESIGN, CLASSES, class_of

PAGE = (Path(__file__).parents[2] / "docs" / "coverage.md").read_text()
ROW = re.compile(r"^\| (?P<operator>[\w ]+) \| (?P<cases>\d+) \| (?P<passed>\d+) \| (?P<classes>.*?) \| ", re.MULTILINE)
NO_ROW = "Op: the op table has no row for it [no-row]"


@pytest.mark.parametrize(
    ("text", "reason", "expected"),
    [
        ("g (float[4] x, int64 n) => (seq(float[n]) y) { y = Op(x, n) }", "Loop: steps [operand]", "strings, sequences, maps"),
        ("g (string[4] x) => (float[4] y) { y = Op(x) }", "model: 'x' has element type STRING", "strings, sequences, maps"),
        ("g (float[4] x) => (float[4] y) { y = ai.onnx.preview.training.Adam(x) }", NO_ROW, "training"),
        ("g (float[4] x) => (float[4] y) { y = Bernoulli(x) }", "Bernoulli: random numbers [random]", "by design"),
        ("g (float[4] x, int64[1] n) => (float[2] y) { y = Slice(x, n, n) }", "Slice: 'ends' decides [operand]", "sizes"),
        ("g (float[4] x) => (float[4] y) { y = Abs(x) }", "Abs: something new [rank]", "not done yet"),
        ("g (float[4] x) => (float[2] y) { y = Unique<axis=0>(x) }", NO_ROW, "not done yet"),
        ("g (float[4] x, int64[1] n) => (float[2] y) { y = MaxUnpool(x, n, n) }", NO_ROW, "not done yet"),
    ],
)  # fmt: skip
def test_class_follows_from_the_case_and_the_reason(text: str, reason: str, expected: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 22, "ai.onnx.preview.training": 1]> {text}')
    assert class_of(model.graph.node[0].op_type, model, [reason]) == expected


def test_page_gives_every_refusal_a_class_and_their_sums() -> None:
    found: Counter[str] = Counter()
    for row in ROW.finditer(PAGE):
        told = dict(part.rsplit(": ", 1) for part in row["classes"].split("; ") if part)
        assert set(told) <= set(CLASSES), row["operator"]
        assert sum(map(int, told.values())) == int(row["cases"]) - int(row["passed"]), row["operator"]
        found.update({name: int(count) for name, count in told.items()})
    stated = {name: int(count) for name, count in re.findall(r"^- \*\*(.+?)\*\*: (\d+)\. ", PAGE, re.MULTILINE)}
    assert stated == {name: found[name] for name in CLASSES}
    rejected = re.search(r"(\d+) rejected, 0 wrong", PAGE)
    assert rejected is not None
    assert found.total() == int(rejected[1])


def test_operator_that_is_refused_for_good_is_on_the_page() -> None:
    refused = {row["operator"] for row in ROW.finditer(PAGE) if "by design" in row["classes"]}
    assert set(BY_DESIGN) <= refused
