"""Constants that are computed from sizes when a program is loaded, in each type of floats, rounded as NumPy does."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest

import hipdnn_mlir

KINDS = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16), "float": np.dtype(np.float32)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_size_is_a_float_of_each_type(kind: str) -> None:
    dtype = KINDS[kind]
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21]>
      g ({kind}[n,4] x) => ({kind}[n,4] y) {{
        size = Shape<start=0, end=1>(x) number = CastLike(size, x) y = Mul(x, number) }}""")
    session = hipdnn_mlir.compile(model).session()
    for n in (
        1,
        3,
        2047,
        2049,
        4099,
    ):  # 2049 and 4099 lie between two numbers of float16, all but the first two of bfloat16
        x = np.random.default_rng(n).uniform(-1, 1, (n, 4)).astype(dtype)
        (y,) = session.run(None, {"x": x})
        want = (x.astype(np.float32) * np.array(n).astype(dtype).astype(np.float32)).astype(dtype)
        np.testing.assert_array_equal(y.astype(np.float32), want.astype(np.float32))
