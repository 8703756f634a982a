"""The custom operation of examples/extension, registered with the host's hipDNN library as a plugin of that would be."""

from __future__ import annotations

import ctypes

import numpy as np

import installed


class HostTensor(ctypes.Structure):
    """`hipdnnHostTensor_ext_t`."""

    _fields_ = (
        ("data_type", ctypes.c_int),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.POINTER(ctypes.c_float)),
    )


class HostCall(ctypes.Structure):
    """`hipdnnHostCustomCall_ext_t`."""

    _fields_ = (
        ("inputs", ctypes.POINTER(HostTensor)),
        ("input_count", ctypes.c_size_t),
        ("outputs", ctypes.POINTER(HostTensor)),
        ("output_count", ctypes.c_size_t),
        ("attributes", ctypes.POINTER(ctypes.c_char)),
        ("attribute_bytes", ctypes.c_size_t),
    )


REFUSES = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(HostCall), ctypes.c_void_p)
EXECUTE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(HostCall), ctypes.c_int, ctypes.c_void_p)


class HostOp(ctypes.Structure):
    """`hipdnnHostCustomOp_ext_t`."""

    _fields_ = (("refuses", REFUSES), ("execute", EXECUTE), ("user", ctypes.c_void_p))


def array(tensor: HostTensor) -> np.ndarray:
    dims = tuple(tensor.dims[i] for i in range(tensor.rank))
    assert [tensor.strides[i] for i in range(tensor.rank)] == [int(np.prod(dims[i + 1 :])) for i in range(tensor.rank)]
    return np.ctypeslib.as_array(tensor.data, dims)


@EXECUTE
def sort_rows(call: ctypes._Pointer[HostCall], threads: int, user: object) -> int:
    """Sort each row of the one operand."""
    del threads, user
    attributes = ctypes.string_at(call.contents.attributes, call.contents.attribute_bytes)
    rows = np.sort(array(call.contents.inputs[0]), axis=-1)
    array(call.contents.outputs[0])[...] = rows[:, ::-1] if b'"descending":1' in attributes else rows
    return 0


def register_sort_rows() -> None:
    """Let the host's library know the operation."""
    library = ctypes.CDLL(str(installed.library("host")))
    operation = HostOp(REFUSES(0), sort_rows, None)
    assert library.hipdnnHostRegisterCustomOp_ext(b"acme.sort_rows", ctypes.byref(operation)) == 0
