"""What a device reaches at most: the bandwidth of copies and the rate of matrix products, measured by programs of one operation."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ... import _runtime
from ...abi import Attribute as A
from ...abi import AttributeType as T
from ...abi import DataType, Pointwise
from ...abi import Descriptor as D
from ...dtypes import BF16, BY_NAME
from ...errors import HipdnnMlirError
from ...options import Settings, options_of
from ..arrays import Array
from ..devices import open_device

PEAK_DTYPES = ("f32", "f16", "bf16")
"""Element types whose matrix products are measured."""

_COPIED_BYTES = {"host": 1 << 27}
_COPIED_BYTES_OF_GPU = 1 << 29
"""Bytes that the bandwidth is measured on, by port: more than the caches hold."""

_PRODUCT_SIZE = {"host": 1024}
_PRODUCT_SIZE_OF_GPU = 4096
"""Rows, columns and depth of the matrix product, by port: enough to keep all cores busy."""

_REPEAT = 6
"""Runs of each; the first does not count, of the others the fastest does."""

_KEPT = ("port", "device", "threads", "tf32", "policies", "plugin_dirs", "plugin_mode")
"""Options of a session that say what is measured."""

_SMALL_BYTES = 64
"""What goes in and out of the program that copies: not what is measured."""


@dataclass(frozen=True)
class Ceilings:
    """What a device reached, as the session uses it: its threads, and TF32 where that is allowed.

    Attributes:
        gbytes_s: Bytes read and written a second, 1e9, by a copy or a pointwise operation, the better of the two; None where neither ran.
        gflops: Operations a second, 1e9, of a matrix product, by the element type of its operands; a type that no engine takes is missing.
    """

    gbytes_s: float | None
    gflops: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return asdict(self)


def measure_ceilings(settings: Settings) -> Ceilings:
    """Return what a device reaches; measured once in a process, in a few seconds.

    Args:
        settings: What the session's device was opened with. The library with its plugins, the device, threads and TF32 count, not how
            plans are chosen.
    """
    rows = options_of("runtime")
    chosen = Settings({name: settings[name] if name in _KEPT else row.default for name, row in rows.items()})
    # A device of its own, whose plans are the library's first choice, compared with nothing and kept nowhere.
    return _measured(Settings(chosen | {"compare_plans": False, "plan_cache": ""}))


@functools.cache
def _measured(settings: Settings) -> Ceilings:
    device, port = open_device(settings), settings["port"]
    programs = _Programs(device.target, settings["tf32"])
    copied = _COPIED_BYTES.get(port, _COPIED_BYTES_OF_GPU)
    seconds = [_best_s(device, program, {}, [1, 2]) for program in (programs.copy(copied), programs.relu(copied))]
    bandwidths = [2 * copied / best for best in seconds if best]
    size = _PRODUCT_SIZE.get(port, _PRODUCT_SIZE_OF_GPU)
    gflops = {}
    for dtype in PEAK_DTYPES:
        best = _best_s(device, programs.product(size, dtype), _operands(size, dtype), [0])
        if best:
            gflops[dtype] = 2 * size**3 / best / 1e9
    return Ceilings(max(bandwidths) / 1e9 if bandwidths else None, gflops)


def _best_s(device: _runtime.Device, program: str, tensors: Mapping[str, Array], steps: Sequence[int]) -> float | None:
    """Return the least time of any of the steps, in seconds; None where the device does not run the program or the memory is short."""
    stored = {name: array for name, array in tensors.items() if name == "w"}
    try:
        session = _runtime.Sessions(device, _runtime.Program.parse(program, stored), 1).at_sizes([])
        inputs = [tensors["x"] if "x" in tensors else np.zeros(_SMALL_BYTES, np.uint8)]
        runs = session.profile(inputs, _REPEAT)[1:]
    except HipdnnMlirError:
        return None
    return min(elapsed_us[step] for _, elapsed_us in runs for step in steps) / 1e6


def _operands(size: int, dtype: str) -> dict[str, Array]:
    """Return random operands of a product, ``x`` as an array of its type and ``w`` as bytes: zeros would cost a GPU less power."""
    numbers = np.random.default_rng(0).random((size, size), np.float32) - np.float32(0.5)
    is_bf16 = dtype == BF16.name  # which crosses as 16-bit integers
    x = (numbers.view(np.uint32) >> 16).astype(np.uint16) if is_bf16 else numbers.astype(BY_NAME[dtype].numpy)
    return {"x": x, "w": x.reshape(-1).view(np.uint8)}


@dataclass(frozen=True)
class _Programs:
    """Writes programs for a target, as docs/program-format.md describes them."""

    target: str
    allows_tf32: bool

    def copy(self, size: int) -> str:
        """Two arrays, copied there and back; before and after that, what a program has to have: an input and an output."""
        there, back = (_copy(size, *way) for way in ((1, 2), (2, 1)))
        return self._through(size, [], there, back)

    def relu(self, size: int) -> str:
        """The same with a pointwise operation, which more than one thread may run."""
        dims = [size // BY_NAME["f32"].bytes]
        operation = [
            D.OPERATION_POINTWISE_DESCRIPTOR,
            [
                [A.OPERATION_POINTWISE_IN_0_EXT, T.BACKEND_DESCRIPTOR, [0]],
                [A.OPERATION_POINTWISE_OUT_0_EXT, T.BACKEND_DESCRIPTOR, [1]],
                [A.POINTWISE_MODE, T.POINTWISE_MODE, [int(Pointwise.RELU_FWD)]],
                [A.POINTWISE_MATH_PREC, T.DATA_TYPE, [int(DataType.FLOAT)]],
            ],
        ]
        graph = _graph("relu", [("f32", dims, "in"), ("f32", dims, "out")], operation)
        return self._through(size, [graph], _execute(1, 2), _execute(2, 1))

    def product(self, size: int, dtype: str) -> str:
        """A matrix product with a constant on its right."""
        dims, size_bytes = [size, size], size * size * BY_NAME[dtype].bytes
        operation = [
            D.OPERATION_MATMUL_DESCRIPTOR,
            [
                [A.OPERATION_MATMUL_ADESC, T.BACKEND_DESCRIPTOR, [0]],
                [A.OPERATION_MATMUL_BDESC, T.BACKEND_DESCRIPTOR, [1]],
                [A.OPERATION_MATMUL_CDESC, T.BACKEND_DESCRIPTOR, [2]],
                [A.MATMUL_COMP_TYPE, T.DATA_TYPE, [int(DataType.FLOAT)]],
            ],
        ]
        graph = _graph("matmul", [(dtype, dims, "in"), (dtype, dims, "in"), (dtype, dims, "out")], operation)
        kinds = ("input", "constant", "output")
        return self._text(
            inputs=[{"name": "x", "dtype": dtype, "dims": dims, "buffer": 0}],
            outputs=[{"name": "y", "dtype": dtype, "dims": dims, "buffer": 2}],
            constants=[{"tensor": "w", "buffer": 1}],
            buffers=[{"kind": kind, "bytes": size_bytes} for kind in kinds],
            executables=[graph],
            steps=[_execute(0, 1, 2)],
        )

    def _through(self, size: int, executables: list[Any], there: dict[str, Any], back: dict[str, Any]) -> str:
        port = {"dtype": "u8", "dims": [_SMALL_BYTES]}
        sizes = {"input": [_SMALL_BYTES], "temp": [size, size], "output": [_SMALL_BYTES]}
        return self._text(
            inputs=[{"name": "x", "buffer": 0, **port}],
            outputs=[{"name": "y", "buffer": 3, **port}],
            constants=[],
            buffers=[{"kind": kind, "bytes": each} for kind, chosen in sizes.items() for each in chosen],
            executables=executables,
            steps=[_copy(_SMALL_BYTES, 0, 1), there, back, _copy(_SMALL_BYTES, 1, 3)],
        )

    def _text(self, **body: Any) -> str:
        head = {"format": _runtime.PROGRAM_FORMAT, "target": self.target, "tf32": self.allows_tf32}
        return json.dumps({**head, "producer": {}, "model": {}, "kernels": [], **body})


def _copy(size: int, source: int, destination: int) -> dict[str, Any]:
    src, dst = ({"buffer": buffer, "offset": 0} for buffer in (source, destination))
    return {"kind": "copy", "name": "copy", "bytes": size, "src": src, "dst": dst}


def _execute(*buffers: int) -> dict[str, Any]:
    operands = [{"buffer": buffer, "offset": 0} for buffer in buffers]
    return {"kind": "execute", "executable": 0, "name": "run", "operands": operands}


def _graph(name: str, tensors: Sequence[tuple[str, Sequence[int], str]], operation: list[Any]) -> dict[str, Any]:
    """Return an executable of one operation on dense tensors: (element type, dims, role)."""
    descriptors = [
        [
            D.TENSOR_DESCRIPTOR,
            [
                [A.TENSOR_UNIQUE_ID, T.INT64, [uid]],
                [A.TENSOR_DATA_TYPE, T.DATA_TYPE, [BY_NAME[dtype].hipdnn_value]],
                [A.TENSOR_DIMENSIONS, T.INT64, list(dims)],
                [A.TENSOR_STRIDES, T.INT64, [math.prod(dims[place + 1 :]) for place in range(len(dims))]],
                [A.TENSOR_IS_VIRTUAL, T.BOOLEAN, [False]],
            ],
        ]
        for uid, (dtype, dims, _) in enumerate(tensors, 1)
    ]
    types = (A.OPERATIONGRAPH_COMPUTE_DATA_TYPE_EXT, A.OPERATIONGRAPH_INTERMEDIATE_DATA_TYPE_EXT)
    compute = [[kind, T.DATA_TYPE, [int(DataType.FLOAT)]] for kind in types]
    io = [[A.OPERATIONGRAPH_IO_DATA_TYPE_EXT, T.DATA_TYPE, [BY_NAME[tensors[0][0]].hipdnn_value]]]
    whole = [
        [A.OPERATIONGRAPH_OPS, T.BACKEND_DESCRIPTOR, [len(tensors)]],
        *compute,
        *io,
        [A.OPERATIONGRAPH_HANDLE, T.HANDLE, None],
    ]
    operands = [{"uid": uid, "role": role} for uid, (_, _, role) in enumerate(tensors, 1)]
    return {
        "name": name,
        "summary": name,
        "operands": operands,
        "descriptors": [*descriptors, operation, [D.OPERATIONGRAPH_DESCRIPTOR, whole]],
    }
