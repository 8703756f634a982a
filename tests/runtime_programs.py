"""Small programs written by hand, for the runtime's tests: no compiler in between."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hipdnn_mlir_runtime.abi import Attribute, AttributeType, Descriptor, Pointwise
from hipdnn_mlir_runtime.dtypes import BY_NAME, of_numpy

Array = np.ndarray[Any, Any]
Attributes = list[list[Any]]

CONVOLUTION_FORWARD = 15
MATH_TYPE = {"f32": 0, "f64": 1, "f16": 2, "bf16": 6}


def dense_strides(dims: Sequence[int]) -> list[int]:
    """Return the strides, in elements, of a dense array in C order."""
    return [int(np.prod(dims[i + 1 :], dtype=np.int64)) for i in range(len(dims))]


@dataclass
class Graph:
    """One executable under construction: tensors and operations become descriptors in the order they are added."""

    name: str
    compute: str = "f32"
    descriptors: list[list[Any]] = field(default_factory=list)
    operands: list[dict[str, Any]] = field(default_factory=list)
    operations: list[int] = field(default_factory=list)
    uids: int = 0

    def tensor(
        self, dtype: str, dims: Sequence[int], role: str | None = None, strides: Sequence[int] | None = None
    ) -> int:
        """Add a tensor and return its descriptor's index; without a role it is virtual."""
        self.uids += 1
        hipdnn = BY_NAME[dtype].hipdnn
        assert hipdnn is not None
        self._add(
            int(Descriptor.TENSOR_DESCRIPTOR),
            [
                [Attribute.TENSOR_UNIQUE_ID, AttributeType.INT64, [self.uids]],
                [Attribute.TENSOR_DATA_TYPE, AttributeType.DATA_TYPE, [int(hipdnn)]],
                [Attribute.TENSOR_DIMENSIONS, AttributeType.INT64, list(dims)],
                [Attribute.TENSOR_STRIDES, AttributeType.INT64, list(strides or dense_strides(dims))],
                [Attribute.TENSOR_IS_VIRTUAL, AttributeType.BOOLEAN, [role is None]],
            ],
        )
        if role is not None:
            self.operands.append({"uid": self.uids, "role": role})
        return len(self.descriptors) - 1

    def pointwise(self, mode: str, inputs: Sequence[int], output: int) -> None:
        """Add a pointwise operation."""
        names = (Attribute.OPERATION_POINTWISE_IN_0_EXT, Attribute.OPERATION_POINTWISE_IN_1_EXT)
        attributes = [
            [name, AttributeType.BACKEND_DESCRIPTOR, [index]] for name, index in zip(names, inputs, strict=False)
        ]
        attributes += [
            [Attribute.OPERATION_POINTWISE_OUT_0_EXT, AttributeType.BACKEND_DESCRIPTOR, [output]],
            [Attribute.POINTWISE_MODE, AttributeType.POINTWISE_MODE, [int(Pointwise[mode])]],
            [Attribute.POINTWISE_MATH_PREC, AttributeType.DATA_TYPE, [MATH_TYPE[self.compute]]],
        ]
        self._operation(int(Descriptor.OPERATION_POINTWISE_DESCRIPTOR), attributes)

    def convolution(self, x: int, w: int, y: int, padding: Sequence[int]) -> None:
        """Add a forward convolution with stride and dilation 1."""
        ones = [1] * len(padding)
        attributes = [
            [Attribute.OPERATION_CONVOLUTION_FORWARD_X, AttributeType.BACKEND_DESCRIPTOR, [x]],
            [Attribute.OPERATION_CONVOLUTION_FORWARD_W, AttributeType.BACKEND_DESCRIPTOR, [w]],
            [Attribute.OPERATION_CONVOLUTION_FORWARD_Y, AttributeType.BACKEND_DESCRIPTOR, [y]],
            [Attribute.CONVOLUTION_PRE_PADDINGS, AttributeType.INT64, list(padding)],
            [Attribute.CONVOLUTION_POST_PADDINGS, AttributeType.INT64, list(padding)],
            [Attribute.CONVOLUTION_FILTER_STRIDES, AttributeType.INT64, ones],
            [Attribute.CONVOLUTION_DILATIONS, AttributeType.INT64, ones],
            [Attribute.CONVOLUTION_CONV_MODE, AttributeType.CONVOLUTION_MODE, [1]],
            [Attribute.CONVOLUTION_COMP_TYPE, AttributeType.DATA_TYPE, [MATH_TYPE[self.compute]]],
        ]
        self._operation(CONVOLUTION_FORWARD, attributes)

    def to_json(self) -> dict[str, Any]:
        """Close the graph and return the executable."""
        compute = [MATH_TYPE[self.compute]]
        types = ("COMPUTE_DATA_TYPE_EXT", "INTERMEDIATE_DATA_TYPE_EXT", "IO_DATA_TYPE_EXT")
        self._add(
            int(Descriptor.OPERATIONGRAPH_DESCRIPTOR),
            [
                [Attribute.OPERATIONGRAPH_OPS, AttributeType.BACKEND_DESCRIPTOR, self.operations],
                *([Attribute[f"OPERATIONGRAPH_{name}"], AttributeType.DATA_TYPE, compute] for name in types),
                [Attribute.OPERATIONGRAPH_HANDLE, AttributeType.HANDLE, None],
            ],
        )
        return {"name": self.name, "summary": self.name, "operands": self.operands, "descriptors": self.descriptors}

    def _operation(self, kind: int, attributes: Attributes) -> None:
        self._add(kind, attributes)
        self.operations.append(len(self.descriptors) - 1)

    def _add(self, kind: int, attributes: Attributes) -> None:
        self.descriptors.append([kind, [[int(name), int(kind_), value] for name, kind_, value in attributes]])


@dataclass
class ProgramText:
    """A program in memory, as a session takes it."""

    document: dict[str, Any]
    tensors: Mapping[str, Array] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The JSON."""
        return json.dumps(self.document)

    def save(self, path: Path) -> Path:
        """Write the container by hand, every tensor padded to 64 bytes."""
        path.write_bytes(container_bytes(self.text, self.tensors))
        return path


def container_bytes(text: str, tensors: Mapping[str, Array]) -> bytes:
    """Return a program file: header length, header, data."""
    header: dict[str, Any] = {"__metadata__": {"hipdnn_program": text}}
    data = b""
    names = {"f32": "F32", "f64": "F64", "i64": "I64", "bf16": "BF16"}
    for name, array in tensors.items():
        raw = array.tobytes()
        shape = list(array.shape)
        header[name] = {
            "dtype": names[of_numpy(array.dtype).name],
            "shape": shape,
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
        if padding := -len(data) % 64:
            header[f"__pad.{name}"] = {
                "dtype": "U8",
                "shape": [padding],
                "data_offsets": [len(data), len(data) + padding],
            }
            data += bytes(padding)
    encoded = json.dumps(header).encode()
    encoded += b" " * (-(len(encoded) + 8) % 64)
    return len(encoded).to_bytes(8, "little") + encoded + data


def document(
    executables: Sequence[dict[str, Any]],
    inputs: Sequence[dict[str, Any]],
    outputs: Sequence[dict[str, Any]],
    constants: Sequence[dict[str, Any]],
    buffers: Sequence[tuple[str, int]],
    steps: Sequence[dict[str, Any]],
    kernels: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Return a program's JSON document for target ``host``. A buffer is (kind, bytes)."""
    return {
        "format": 1,
        "target": "host",
        "producer": {},
        "model": {"name": "handmade", "sha256": hashlib.sha256(b"").hexdigest()},
        "inputs": list(inputs),
        "outputs": list(outputs),
        "constants": list(constants),
        "buffers": [{"kind": kind, "bytes": size} for kind, size in buffers],
        "executables": list(executables),
        "kernels": list(kernels),
        "steps": list(steps),
    }


def execute(executable: int, name: str, *buffers: int) -> dict[str, Any]:
    """Return an execute step whose operands are whole buffers."""
    return {
        "kind": "execute",
        "executable": executable,
        "name": name,
        "operands": [{"buffer": buffer, "offset": 0} for buffer in buffers],
    }


def launch(kernel: int, name: str, *buffers: int) -> dict[str, Any]:
    """Return a launch step whose operands start where their buffers do."""
    return {
        "kind": "launch",
        "kernel": kernel,
        "name": name,
        "operands": [{"buffer": buffer, "offset": 0} for buffer in buffers],
    }


@dataclass(frozen=True)
class TensorSpec:
    """A kernel's tensor: dtype name, dims, strides in elements (dense in C order where None)."""

    dtype: str
    dims: tuple[int, ...]
    strides: tuple[int, ...] | None = None

    @property
    def steps(self) -> tuple[int, ...]:
        """The strides, in elements."""
        return tuple(dense_strides(self.dims)) if self.strides is None else self.strides

    @property
    def extent(self) -> int:
        """Elements from the first to the end of the last."""
        if 0 in self.dims:
            return 0
        return 1 + sum((dim - 1) * step for dim, step in zip(self.dims, self.steps, strict=True))

    def to_json(self, role: str) -> dict[str, Any]:
        """Return the tensor as a kernel lists it."""
        return {"role": role, "dtype": self.dtype, "dims": list(self.dims), "strides": list(self.steps)}


def kernel(
    function: str, ins: Sequence[TensorSpec], outs: Sequence[TensorSpec], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a kernel entry."""
    return {
        "name": f"k_{function}",
        "summary": function,
        "function": function,
        "tensors": [t.to_json("in") for t in ins] + [t.to_json("out") for t in outs],
        "attributes": dict(attributes),
    }


def kernel_program(
    function: str, ins: Sequence[TensorSpec], outs: Sequence[TensorSpec], attributes: Mapping[str, Any]
) -> ProgramText:
    """Return a program of one launch: inputs ``x0``, ``x1``, ... and outputs ``y0``, ... are the tensors' memory, flat."""
    tensors = [*ins, *outs]
    names = [f"x{i}" for i in range(len(ins))] + [f"y{i}" for i in range(len(outs))]
    ports = [argument(name, t.dtype, [t.extent], i) for i, (name, t) in enumerate(zip(names, tensors, strict=True))]
    buffers = [
        ("input" if i < len(ins) else "output", t.extent * BY_NAME[t.dtype].bytes) for i, t in enumerate(tensors)
    ]
    return ProgramText(
        document(
            [],
            ports[: len(ins)],
            ports[len(ins) :],
            [],
            buffers,
            [launch(0, f"{function} step", *range(len(tensors)))],
            [kernel(function, ins, outs, attributes)],
        )
    )


def argument(name: str, dtype: str, dims: Sequence[int], buffer: int) -> dict[str, Any]:
    """Return an input or output entry."""
    return {"name": name, "dtype": dtype, "dims": list(dims), "buffer": buffer}


def relu_of_sum(dims: Sequence[int] = (2, 3, 4, 5), dtype: str = "f32") -> ProgramText:
    """Return y = relu(a + b): an add into a temp, then a relu."""
    add = Graph("add")
    a, b, c = (add.tensor(dtype, dims, role) for role in ("in", "in", "out"))
    add.pointwise("ADD", [a, b], c)
    relu = Graph("relu")
    x, y = (relu.tensor(dtype, dims, role) for role in ("in", "out"))
    relu.pointwise("RELU_FWD", [x], y)
    size = int(np.prod(dims)) * BY_NAME[dtype].bytes
    return ProgramText(
        document(
            [add.to_json(), relu.to_json()],
            [argument("a", dtype, dims, 0), argument("b", dtype, dims, 1)],
            [argument("y", dtype, dims, 3)],
            [],
            [("input", size), ("input", size), ("temp", size), ("output", size)],
            [execute(0, "add", 0, 1, 2), execute(1, "relu", 2, 3)],
        )
    )


def convolution(weights: Array, spatial: tuple[int, int] = (8, 8)) -> ProgramText:
    """Return y = conv(relu(x), w), padding 1, x in C order: a relu into a temp, a convolution with constant weights."""
    out_channels, in_channels = weights.shape[:2]
    x_dims, y_dims = (1, in_channels, *spatial), (1, out_channels, *spatial)
    relu = Graph("relu")
    a, b = (relu.tensor("f32", x_dims, role) for role in ("in", "out"))
    relu.pointwise("RELU_FWD", [a], b)
    conv = Graph("conv")
    x = conv.tensor("f32", x_dims, "in")
    w = conv.tensor("f32", weights.shape, "in")
    y = conv.tensor("f32", y_dims, "out")
    conv.convolution(x, w, y, [1, 1])
    x_bytes, y_bytes = 4 * int(np.prod(x_dims)), 4 * int(np.prod(y_dims))
    return ProgramText(
        document(
            [relu.to_json(), conv.to_json()],
            [argument("x", "f32", x_dims, 0)],
            [argument("y", "f32", y_dims, 3)],
            [{"tensor": "w", "buffer": 2}],
            [
                ("input", x_bytes),
                ("temp", x_bytes),
                ("constant", weights.nbytes),
                ("output", y_bytes),
            ],
            [execute(0, "relu", 0, 1), execute(1, "conv", 1, 2, 3)],
        ),
        {"w": weights},
    )
