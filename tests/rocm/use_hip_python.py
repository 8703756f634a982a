"""What somebody with hip-python does with a session, told as JSON: run by test_hip_python.py, which puts AMD's libraries in reach."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from hip import hip

from hipdnn_mlir_runtime.errors import DeviceError, ModelError
from hipdnn_mlir_runtime.session.session import Session
from rocm.other_gpu import OnOtherGpu
from runtime_programs import Array, ProgramText, relu_of_sum

SHAPE = (4, 6)
BYTES = 4 * 24
TO_DEVICE, TO_HOST = hip.hipMemcpyKind.hipMemcpyHostToDevice, hip.hipMemcpyKind.hipMemcpyDeviceToHost


def checked(result: tuple[Any, ...]) -> Any:
    status, *rest = result
    if status != hip.hipError_t.hipSuccess:
        raise RuntimeError(str(status))
    return rest[0] if rest else None


def main() -> None:
    """Run relu(a + b) with memory of hip-python in each form."""
    text = json.loads(relu_of_sum(SHAPE).text) | {"target": "hip"}
    session = Session(ProgramText(text), port="hip", plan_cache=False)
    stream = checked(hip.hipStreamCreateWithFlags(0))
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(SHAPE, np.float32) for _ in range(2))
    wanted = np.maximum(a + b, 0)
    blocks = {name: checked(hip.hipMalloc(BYTES)) for name in ("a", "b", "y")}

    def put(block: Any, array: Array) -> None:
        checked(hip.hipMemcpyAsync(block, array, BYTES, TO_DEVICE, stream))

    def result() -> Array:
        got = np.empty(SHAPE, np.float32)
        checked(hip.hipMemcpyAsync(got, blocks["y"], BYTES, TO_HOST, stream))
        checked(hip.hipStreamSynchronize(stream))
        return got

    def enqueued(view: Callable[[Any], Any], asked: Any = stream) -> bool:
        put(blocks["a"], a)
        put(blocks["b"], b)
        put(blocks["y"], np.zeros(SHAPE, np.float32))
        views = {name: view(block) for name, block in blocks.items()}
        session.enqueue({name: views[name] for name in "ab"}, {"y": views["y"]}, stream=asked)
        return bool(np.array_equal(result(), wanted))

    def typed(block: Any, **more: Any) -> Any:
        return block.configure(typestr="float32", shape=SHAPE, itemsize=4, _force=True, **more)

    def refused(view: Callable[[Any], Any]) -> str:
        try:
            enqueued(view)
        except ModelError as error:
            return str(error)
        return ""

    told: dict[str, Any] = {
        "bytes": enqueued(lambda block: block),
        "pointer": enqueued(lambda block: hip.ihipStream_t(int(block))),  # any of hip-python's pointers
        "address of the stream": enqueued(lambda block: block, int(stream)),
        "typed": enqueued(typed),
        "typed, of a stream": enqueued(lambda block: typed(block, stream=int(stream))),
        "typed, of another stream": enqueued(lambda block: typed(block, stream=1)),
        "other dims": refused(lambda block: block.configure(typestr="float32", shape=(6, 4), itemsize=4, _force=True)),
        "other type": refused(lambda block: block.configure(typestr="float64", shape=(4, 3), itemsize=8, _force=True)),
        "on this GPU": enqueued(lambda block: OnOtherGpu(int(block), SHAPE, 0)),
        "on another GPU": refused(lambda block: OnOtherGpu(int(block), SHAPE, 1)),
        "read-only": refused(lambda block: typed(block, read_only=True)),
    }
    for block in blocks.values():
        typed(block, read_only=False)
    put(blocks["a"], a)
    put(blocks["b"], b)
    checked(hip.hipStreamSynchronize(stream))
    (returned,) = session.run(None, {"a": blocks["a"], "b": blocks["b"]})
    told["run"] = bool(np.array_equal(returned, wanted))
    try:
        Session(ProgramText(text), port="hip", plan_cache=False, device=1)
    except DeviceError as error:
        told["no such GPU"] = str(error)
    told["null"] = refused(lambda _: hip.ihipStream_t(None))
    print(json.dumps(told))  # noqa: T201 - how it answers


main()
