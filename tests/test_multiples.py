"""Networks that halve an image and put together what they double again: one program for the sizes that they take."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper, parser

import hipdnn_mlir
from hipdnn_mlir_runtime import ort_ep
from hipdnn_mlir_runtime.errors import ModelError

NETWORK = """<ir_version: 8, opset_import: ["" : 13]>
net (float[batch,3,height,width] x) => (float[b,4,h,w] y) {
    none = Constant<value=float[0] {}>()
    twice = Constant<value=float[4] {1, 1, 2, 2}>()
    a = Conv<strides=[2, 2], pads=[1, 1, 1, 1]>(x, first)
    b = Conv<strides=[2, 2], pads=[1, 1, 1, 1]>(a, second)
    c = Conv<strides=[2, 2], pads=[1, 1, 1, 1]>(b, second)
    d = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(c, none, twice)
    e = Add(b, d)
    f = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(e, none, twice)
    g = Concat<axis=1>(a, f)
    y = Conv(g, third)
}"""
"""Height and width have to be multiples of 8, up to sizes that happen to fit."""


def network() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    model = parser.parse_model(NETWORK)
    for name, dims in {"first": (4, 3, 3, 3), "second": (4, 4, 3, 3), "third": (4, 8, 1, 1)}.items():
        model.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(dims, np.float32), name))
    return model


def image(*dims: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).standard_normal(dims, np.float32)}


def cpu(model: onnx.ModelProto) -> ort.InferenceSession:
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def session() -> hipdnn_mlir.Session:
    return hipdnn_mlir.compile(network()).session()


@pytest.mark.parametrize("dims", [(1, 3, 8, 16), (2, 3, 64, 40), (3, 3, 104, 8)])
def test_one_program_takes_all_multiples(session: hipdnn_mlir.Session, dims: tuple[int, ...]) -> None:
    (want,) = cpu(network()).run(None, image(*dims))
    (got,) = session.run(None, image(*dims))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("dims", "name"), [((1, 3, 12, 16), "height"), ((1, 3, 16, 15), "width")])
def test_other_sizes_are_an_error_that_says_what_is_needed(
    session: hipdnn_mlir.Session, dims: tuple[int, ...], name: str
) -> None:
    with pytest.raises(ModelError, match=f"needs {name} mod 8 == 0"):
        session.run(None, image(*dims))


def provided(model: onnx.ModelProto, **options: str) -> ort.InferenceSession:
    """A session whose nodes are all the provider's."""
    settings = ort.SessionOptions()
    settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    ort_ep.add_to_session_options(settings, options, device="cpu")
    return ort.InferenceSession(model.SerializeToString(), settings)


def test_the_provider_takes_sizes_that_happen_to_fit_too() -> None:
    session, reference = provided(network()), cpu(network())
    for dims in ((1, 3, 16, 24), (1, 3, 7, 15)):  # 7, 4, 2, 1
        np.testing.assert_allclose(
            session.run(None, image(*dims))[0], reference.run(None, image(*dims))[0], rtol=1e-4, atol=1e-4
        )


def test_the_provider_compiles_for_each_size_what_no_sample_fits() -> None:
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 13]>
    rows (float[batch,3,height,width] x) => (float[batch,3,w] y) {
        axis = Constant<value_ints=[2]>()
        p = AveragePool<kernel_shape=[3, 1], strides=[3, 1]>(x)
        y = Squeeze(p, axis)
    }""")
    with pytest.raises(ModelError, match="Squeeze"):
        hipdnn_mlir.compile(model)
    session = provided(model)
    for dims in ((1, 3, 3, 5), (2, 3, 5, 7)):
        np.testing.assert_allclose(session.run(None, image(*dims))[0], cpu(model).run(None, image(*dims))[0], rtol=1e-6)
