"""Requests over gRPC: tensors in fields of their datatypes, as another implementation's messages have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
from tritonclient.grpc import service_pb2

from hipdnn_mlir.serving.grpc_service import _read
from hipdnn_mlir.serving.messages import message
from hipdnn_mlir_runtime.errors import ModelError


def request(datatype: str, shape: list[int], raw: list[bytes] | None = None, **contents: Any) -> Any:
    given = service_pb2.ModelInferRequest.InferInputTensor(name="x", datatype=datatype, shape=shape)
    if contents:
        given.contents.CopyFrom(service_pb2.InferTensorContents(**contents))
    return received(service_pb2.ModelInferRequest(model_name="m", inputs=[given], raw_input_contents=raw))


def asking(*, region: str = "", classes: int = 0) -> Any:
    """A request with shared memory for its input, or for classes as output."""
    given = tritonclient.grpc.InferInput("x", [1], "FP32")
    wanted = tritonclient.grpc.InferRequestedOutput("y", class_count=classes)
    if region:
        given.set_shared_memory(region, 4)
    return received(service_pb2.ModelInferRequest(inputs=[given._get_tensor()], outputs=[wanted._get_tensor()]))


def received(sent: Any) -> Any:
    return message("ModelInferRequest").FromString(sent.SerializeToString())


@pytest.mark.parametrize(
    ("datatype", "field", "numbers", "dtype"),
    [
        ("UINT64", "uint64_contents", [2**64 - 1, 1], np.uint64),
        ("INT8", "int_contents", [-128, 127], np.int8),
        ("FP32", "fp32_contents", [0.1, float("inf")], np.float32),
        ("BOOL", "bool_contents", [True, False], np.bool_),
    ],
)
def test_contents_are_read(datatype: str, field: str, numbers: list[Any], dtype: Any) -> None:
    found = _read(request(datatype, [1, 2], **{field: numbers})).inputs["x"]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.array([numbers], dtype))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (request("BYTES", [1], bytes_contents=[b"a"]), "unknown datatype"),
        (request("FP16", [1]), "expected raw_input_contents"),
        (request("INT8", [1], int_contents=[128]), "out of bounds"),
        (request("FP32", [2**62, 2**62], [b""]), "wrong number of bytes"),
        (request("FP32", [0, 2**62, 2**62], [b""]), "bad shape"),
        (request("FP32", [0, 2**62, 2**62]), "bad shape"),
        (request("FP32", [-1], [b""]), "bad shape"),
        (request("FP32", [1], [b"1234", b"1234"]), "wrong number of raw_input_contents"),
        (asking(region="r"), "input 'x': shared memory is not supported"),
        (asking(classes=3), "output 'y': classification is not supported"),
    ],
)
def test_what_is_no_tensor_is_refused(given: Any, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        _read(given)
