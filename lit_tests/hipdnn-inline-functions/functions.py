"""The operators that the tests of hipdnn-inline-functions use."""

from pathlib import Path

from hipdnn_mlir import extension

TEXT = Path(__file__).with_name("functions.mlir.inc")
for operator, symbol in {
    "Affine": "affine",
    "Groups": "groups",
    "Linear": "linear",
    "Halves": "halves",
    "Nonzero": "nonzero",
    "BySize": "by_size",
}.items():
    extension.mlir_function("test", operator, TEXT, symbol=symbol)
