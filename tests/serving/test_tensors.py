"""Tensors of the protocol: what a client's own library writes is read, and what is no such tensor is refused."""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tritonclient.http import InferInput, InferRequestedOutput
from tritonclient.http._utils import _get_inference_request
from tritonclient.utils import np_to_triton_dtype

from hipdnn_mlir.serving.tensors import InferRequest, from_bytes, from_numbers, read_request, write_response
from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.session.arrays import ALIGNMENT

DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
]


@pytest.mark.parametrize(("dtype", "binary"), [(d, b) for d in DTYPES for b in (True, False) if b or d != "float16"])
def test_what_a_client_writes_is_read(dtype: str, *, binary: bool) -> None:
    array = np.array([[0, 1, 1], [1, 0, 1]], dtype)
    given = InferInput("x", array.shape, np_to_triton_dtype(array.dtype))
    given.set_data_from_numpy(array, binary_data=binary)
    wanted = [InferRequestedOutput("y", binary_data=binary)]
    body, length = _get_inference_request([given], "7", wanted, 0, False, False, 0, None, None)
    found = read_request([body[:7], body[7:]], None if length is None else str(length))
    assert (found.id, found.outputs) == ("7", {"y": binary})
    assert found.inputs["x"].dtype == array.dtype
    np.testing.assert_array_equal(found.inputs["x"], array)
    assert found.inputs["x"].ctypes.data % ALIGNMENT == 0  # else the run would copy it


@pytest.mark.parametrize(
    ("data", "datatype", "reason"),
    [
        ([1.5, 2], "INT64", "got float64"),
        ([300, 1], "INT8", "out of bounds"),
        ([-1, 1], "UINT8", "out of bounds"),
        ([1, 0], "BOOL", "got int64"),
        ([[1], [2, 3]], "FP32", "inhomogeneous"),
        (["1", "2"], "FP32", "FP32 numbers: got str"),
        ([None, 1], "FP32", "no FP32 numbers"),
        ([2**64, 1], "UINT64", "out of bounds"),
        ([2**63, 1.5], "UINT64", "got float64"),
        ([2**63, -1], "INT64", "out of bounds"),
        ([3, -9], "INT4", "out of bounds: expected -8 to 7"),
        ([20, 1], "UINT4", "out of bounds"),
        ([1e40, 1], "FP32", "out of bounds of FP32"),
        ([70000, 1], "FP16", "out of bounds of FP16"),
        ([1e40, 1], "BF16", "out of bounds"),
        ([500, 1], "FP8e4m3", "out of bounds"),
        ([7, 1], "FP4e2m1", "out of bounds"),
        ([-1, 1], "FP8e8m0", "out of bounds"),
    ],
)
def test_numbers_of_another_kind_are_refused(data: Any, datatype: str, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        from_numbers(data, datatype, [2], "input 'x'")


@pytest.mark.parametrize(
    ("data", "datatype", "dtype"),
    [
        ([2**64 - 1, 1], "UINT64", np.uint64),
        ([-(2**63), 2**63 - 1], "INT64", np.int64),
        ([2**70, 0.5], "FP32", np.float32),
        ([3.4028235e38, float("-inf")], "FP32", np.float32),
        ([0.1, float("nan")], "FP16", np.float16),
        ([447.9, 3], "FP8e4m3", ml_dtypes.float8_e4m3fn),
        ([7, -8], "INT4", ml_dtypes.int4),
    ],
)
def test_numbers_are_those_of_their_datatype(data: list[Any], datatype: str, dtype: Any) -> None:
    found = from_numbers(data, datatype, [2], "input 'x'")
    expected = np.array([np.array(one).astype(dtype) for one in data], dtype)
    assert found.tobytes() == expected.tobytes()


def test_lists_of_many_numbers_are_one_array() -> None:
    numbers = [*range(50_000), 0.5]
    np.testing.assert_array_equal(from_numbers(numbers, "FP64", [50_001], "x"), numbers)
    parts, _ = write_response(InferRequest("", {}), "m", "2", {"x": np.array(numbers)})
    assert json.loads(parts[0])["outputs"][0]["data"] == numbers
    with pytest.raises(ModelError, match="no INT32 numbers"):
        from_numbers(numbers, "INT32", [50_001], "x")


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_json_has_not_is_refused(number: float) -> None:
    arrays = {"y": np.array([1, number], np.float32)}
    with pytest.raises(ModelError, match=r"output 'y': NaN or infinity.*binary"):
        write_response(InferRequest("", {}), "m", "2", arrays)
    assert write_response(InferRequest("", {}, {"y": True}), "m", "2", arrays)[0][1] == arrays["y"].tobytes()


def test_sizes_are_not_taken_on_trust() -> None:
    with pytest.raises(ModelError, match="wrong number of bytes"):
        from_bytes(b"1234", "FP32", [1 << 40], "input 'x'")
    with pytest.raises(ModelError, match="wrong number of elements"):
        from_numbers([1.0], "FP32", [1 << 40], "input 'x'")
    for shape in ([0, 1 << 64], [0, 1 << 62, 1 << 62], [1] * 65):
        with pytest.raises(ModelError, match=r"bad shape|wrong number"):
            from_bytes(b"", "FP32", shape, "input 'x'")
        with pytest.raises(ModelError, match=r"bad shape|wrong number"):
            from_numbers([], "FP32", shape, "input 'x'")
    with pytest.raises(ModelError, match="bad header"):
        read_request([b"{}"], "9" * 5000)
    with pytest.raises(ModelError, match="the body is no JSON"):
        read_request([b"[" * 100_000], None)


def test_any_byte_but_zero_is_true() -> None:
    assert from_bytes(b"\0\1\2\xff", "BOOL", [4], "input 'x'").tolist() == [False, True, True, True]


def test_four_bits_are_a_byte_each() -> None:
    x = from_bytes(b"\x07\xf8", "INT4", [2], "input 'x'")
    assert x.tolist() == [7, -8]
    parts, _ = write_response(InferRequest("", {}, {"x": False}), "m", "2", {"x": x})
    (entry,) = json.loads(parts[0])["outputs"]
    assert (entry["datatype"], entry["data"]) == ("INT4", [7, -8])


def test_an_answer_has_json_and_bytes_behind() -> None:
    arrays = {"y": np.array([1.5, 2], ml_dtypes.bfloat16), "z": np.array([3], np.int64)}
    parts, length = write_response(InferRequest("", {}, {"y": False, "z": True}), "m", "2", arrays)
    assert length == len(parts[0])
    y, z = json.loads(parts[0])["outputs"]
    assert (y["datatype"], y["data"]) == ("BF16", [1.5, 2.0])
    assert (z["datatype"], z["parameters"]) == ("INT64", {"binary_data_size": 8})
    assert np.frombuffer(parts[1], np.int64).tolist() == [3]
