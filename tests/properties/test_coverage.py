"""No operator without its property: what the compiler takes is read from its own tables and from the conformance page."""

from __future__ import annotations

import re

import pytest

from hipdnn_mlir.frontend.decompositions.table import DECOMPOSITIONS
from hipdnn_mlir.ops.registry import HIPDNN_DOMAIN, ONNX
from hipdnn_mlir.ops.table import rows

from .families import OPERATORS

WITHOUT = {
    "ArrayFeatureExtractor": "a Gather, which tests/decompositions has",
    "BiasAdd": "neither ONNX Runtime's CPU provider nor onnx has it",
    "BiasSplitGelu": "neither ONNX Runtime's CPU provider nor onnx has it",
    **dict.fromkeys(
        ("Chosen", "Distinct", "Positions", "Selected"),
        "NonMaxSuppression, Unique, NonZero and Compress, which tests/test_counted_rows.py has",
    ),
    **dict.fromkeys(
        ("Indices", "Joined", "Masked", "Number", "Repeated", "Scattered", "Valid"),
        "parts of operators on lists, which tests/test_counted_lists.py has",
    ),
    "Compress": "data decides its size, which tests/test_counted_rows.py has",
    "Constant": "constant operands of all others are",
    "DeformConv": "samples and a product, which tests/decompositions has",
    "DequantizedMatMul": "a product of quantized operands, which tests/test_float8.py has",
    "Det": "products of elements, which tests/decompositions has",
    "GroupNorm": "neither ONNX Runtime's CPU provider nor onnx has it",
    "If": "its branches are graphs, which tests/test_branches.py has",
    **dict.fromkeys(
        ("LinearClassifier", "LinearRegressor", "Normalizer", "Scaler"),
        "products and sums of its attributes, which tests/decompositions has",
    ),
    **dict.fromkeys(
        ("NonMaxSuppression", "NonZero", "Unique"), "data decides their sizes, which tests/test_counted_rows.py has"
    ),
    "Loop": "its body is a graph, which tests/decompositions has",
    "OptionalGetElement": "of tensors it does nothing",
    "OptionalHasElement": "of tensors it is true",
    "PagedGroupQueryAttention": "GroupQueryAttention with caches in pages, which tests/test_paged_caches.py has",
    "QLinearMatMulWithBias": "a quantized product with a bias, which tests/test_quantized_models.py has",
    **dict.fromkeys(
        ("Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        "constants of a seed, which tests/decompositions has",
    ),
    "RoiAlign": "rows that are gathered, times weights, which tests/decompositions has",
    "Scan": "its body is a graph, which tests/decompositions has",
    "SkipGroupNorm": "neither ONNX Runtime's CPU provider nor onnx has it",
    **dict.fromkeys(
        ("TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"),
        "its attributes are trees, which tests/decompositions has",
    ),
}
"""Operators that have no property, and why."""
_PASSED = re.compile(r"^\| (\w+) \| \d+ \| [1-9]\d* \|", re.MULTILINE)


def test_operator_has_a_property_when_the_compiler_takes_it(pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / "docs" / "coverage.md").read_text()
    of_rows = {name for row in rows().values() for name in row.onnx}
    own = {name.removeprefix(ONNX) for name in rows() if name.startswith(ONNX)}
    of_hipdnn = {name.removeprefix(ONNX) for name, row in rows().items() if row.results}  # tests/test_hipdnn_domain.py
    own_names = of_hipdnn | {f"{HIPDNN_DOMAIN}.{name}" for name in of_hipdnn}
    taken = (of_rows | own | set(_PASSED.findall(page))) - own_names
    assert taken - {name for _, name in OPERATORS} - set(WITHOUT) == set()
    assert {key for key in DECOMPOSITIONS if key[1] not in WITHOUT} - set(OPERATORS) == set()


def test_operator_has_no_property_when_a_reason_says_so() -> None:
    assert {name for _, name in OPERATORS} & set(WITHOUT) == set()
