"""Dims of the same name and different sizes: no error where the model's operators take them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from .sessions import make_session, partitions, reference

Sizes = dict[str, tuple[int, ...]]
OWN: dict[str, tuple[str, Sizes]] = {
    "two inputs": (
        """g (float[n,3] x, float[n,4] z) => (float[n,3] y, float[n,4] v) {
        y = Relu(x) v = Relu(z) }""",
        {"x": (2, 3), "z": (5, 4)},
    ),
    "an image": ("g (float[n,3,n,n] x) => (float[n,3,n,n] y) { y = Sigmoid(x) }", {"x": (1, 3, 48, 192)}),
}
WITHOUT_ONE_FORM = """g (float[n,12] x, float[n,4] z) => (float[4,6] y, float[n,4] v) <int64[2] s = {4,6}> {
    r = Relu(x) y = Reshape(r, s) v = Relu(z) }"""
BROADCAST = """g (float[n,3] x, float[n,3] z) => (float[n,3] y) <int64[1] zero = {0}, int64[1] limit = {70}> {
    l = Slice(x, zero, limit, zero) y = Add(l, z) }"""
"""Holds for up to 70 rows, so that the model is kept to compile it for others."""


def _model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 17]> {text}')


def _check(model: onnx.ModelProto, sizes: Sizes, cache: Path, kind: str = "cpu") -> None:
    session = make_session(model, cache, kind=kind, options={"placement": "maximal"})
    assert partitions(session)
    feeds = {name: np.random.default_rng(1).standard_normal(dims, np.float32) for name, dims in sizes.items()}
    for got, want in zip(session.run(None, feeds), reference(model, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("case", OWN)
def test_sizes_of_one_name_differ_when_the_operators_take_them(case: str, kind: str, tmp_path: Path) -> None:
    _check(_model(OWN[case][0]), OWN[case][1], tmp_path, kind)
    assert len(list(tmp_path.glob("*.hipdnn"))) == 1


def test_sizes_without_a_name_differ(tmp_path: Path) -> None:
    model = _model(OWN["an image"][0])
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        if dim.dim_param:
            dim.dim_param = "?"
    _check(model, OWN["an image"][1], tmp_path)


def test_sizes_of_one_name_differ_when_a_program_is_compiled_for_each(tmp_path: Path) -> None:
    _check(_model(WITHOUT_ONE_FORM), {"x": (2, 12), "z": (5, 4)}, tmp_path)


def test_size_of_one_is_broadcast_when_the_model_is_at_hand(tmp_path: Path) -> None:
    _check(_model(BROADCAST), {"x": (4, 3), "z": (1, 3)}, tmp_path)


@pytest.mark.parametrize("dims", [(4, 1), (1, 4), (4, 4)])
def test_size_of_one_is_broadcast_where_names_differ(dims: tuple[int, int], tmp_path: Path) -> None:
    model = _model("g (float[a,3] x, float[b,3] z) => (float[c,3] y) { y = Add(x, z) }")
    _check(model, {"x": (dims[0], 3), "z": (dims[1], 3)}, tmp_path)
