"""Device memory, streams and IoBinding, on the virtual GPU: the GPU paths of the interface over the host's memory."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from hipdnn_mlir_runtime import ort_ep

from .sessions import devices, make_session, partitions, placed_nodes, reference
from .small_models import alternating, convolution, inputs_for

AMD = 0x1002


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def on_device(array: np.ndarray) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(array, "gpu", 0, AMD)


def test_virtual_gpu_is_offered_beside_the_cpu() -> None:
    (gpu,) = devices("gpu")
    assert gpu.device.vendor_id == AMD
    assert gpu.ep_vendor == "AMD"
    (cpu,) = devices("cpu")
    assert cpu.device.type == ort.OrtHardwareDeviceType.CPU


def test_values_on_the_device_come_back_equal(cache) -> None:
    make_session(convolution(), cache, kind="gpu")
    for shape in ((3, 5), (1,), (0, 4), (257, 1031)):
        array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        value = on_device(array)
        assert value.device_name() != "cpu"
        np.testing.assert_array_equal(value.numpy(), array)


def test_io_binding_runs_on_device_values(cache) -> None:
    model = convolution()
    session = make_session(model, cache, kind="gpu", wholly=True)
    x = inputs_for(model)
    given, result = on_device(x["x"]), on_device(np.zeros((1, 8, 8, 8), np.float32))
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", given)
    binding.bind_ortvalue_output("y", result)
    for _ in range(3):
        session.run_with_iobinding(binding)
    np.testing.assert_allclose(result.numpy(), reference(model, x)[0], rtol=1e-5, atol=1e-5)


def test_output_stays_on_the_device_when_bound_there(cache) -> None:
    model = convolution()
    session = make_session(model, cache, kind="gpu")
    x = inputs_for(model)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", on_device(x["x"]))
    # bind_output takes no vendor, so a GPU there is an NVIDIA one; the binding beneath it does.
    device = ort.capi.onnxruntime_inference_collection.OrtDevice.make("gpu", 0, AMD)
    binding._iobinding.bind_output("y", device._get_c_device())
    session.run_with_iobinding(binding)
    (result,) = binding.get_outputs()
    np.testing.assert_allclose(result.numpy(), reference(model, x)[0], rtol=1e-5, atol=1e-5)


def test_session_runs_on_the_callers_stream(cache) -> None:
    hip = ctypes.CDLL(str(Path(ort_ep.get_library_path()).with_name("libhipdnn_host.so")))
    stream = ctypes.c_void_p()
    assert hip.hipStreamCreateWithFlags(ctypes.byref(stream), 0) == 0
    model = convolution()
    x = inputs_for(model)
    for text in (str(stream.value), hex(stream.value)):
        session = make_session(model, cache, kind="gpu", options={"user_compute_stream": text})
        np.testing.assert_allclose(session.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)
        del session
    assert hip.hipStreamDestroy(stream) == 0
    with pytest.raises(Exception, match="user_compute_stream"):
        make_session(model, cache, kind="gpu", options={"user_compute_stream": "a stream"})


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_nodes_on_both_sides_exchange_values(kind, cache) -> None:
    model = alternating()
    session = make_session(model, cache, kind=kind, options={"placement": "maximal"})
    assert len(partitions(session)) == 4
    on_ep, elsewhere = placed_nodes(session)
    assert len(on_ep) == 4
    assert len(elsewhere) >= 4
    for seed in range(3):
        x = inputs_for(model, seed=seed)
        np.testing.assert_array_equal(session.run(None, x)[0], reference(model, x)[0])


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_threads_share_a_session(kind, cache) -> None:
    model = convolution()
    session = make_session(model, cache, kind=kind)
    cases = [inputs_for(model, seed=seed) for seed in range(8)]
    expected = [session.run(None, x)[0] for x in cases]

    def repeat(index: int) -> None:
        for _ in range(100):
            np.testing.assert_array_equal(session.run(None, cases[index])[0], expected[index])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(repeat, range(8)))


def test_badly_aligned_arrays_are_taken(cache) -> None:
    model = convolution()
    session = make_session(model, cache)
    x = inputs_for(model)["x"]
    for shift in range(4):
        room = np.zeros(x.size + 8, np.float32)
        start = shift + (-room.ctypes.data % 16) // 4 if room.ctypes.data % 4 == 0 else shift
        shifted = room[start : start + x.size].reshape(x.shape)
        shifted[:] = x
        result_room = np.zeros(8 * 64 + 8, np.float32)
        result = result_room[start : start + 8 * 64].reshape(1, 8, 8, 8)
        binding = session.io_binding()
        binding.bind_input("x", "cpu", 0, np.float32, x.shape, shifted.ctypes.data)
        binding.bind_output("y", "cpu", 0, np.float32, result.shape, result.ctypes.data)
        session.run_with_iobinding(binding)
        np.testing.assert_allclose(result, reference(model, {"x": x})[0], rtol=1e-5, atol=1e-5)


def test_memory_does_not_grow_with_sessions(cache) -> None:
    model = convolution()

    def resident_kb() -> int:
        return int(
            next(
                line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS")
            ).split()[1]
        )

    x = inputs_for(model)
    for kind in ("cpu", "gpu"):
        for _ in range(30):
            make_session(model, cache, kind=kind).run(None, x)
    before = resident_kb()
    for kind in ("cpu", "gpu"):
        for _ in range(100):
            make_session(model, cache, kind=kind).run(None, x)
    assert resident_kb() - before < 8 << 10
