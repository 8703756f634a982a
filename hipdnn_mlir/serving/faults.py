"""Errors of requests, and what HTTP and gRPC call them."""

from __future__ import annotations

import grpc

from hipdnn_mlir_runtime.errors import DeviceError, HipdnnMlirError, ModelError


class UnknownModelError(ModelError):
    """There is no such model, or not of this version."""


class QueueFullError(ModelError):
    """There are as many requests as a server lets wait."""


class TooLargeError(ModelError):
    """A request has more bytes than are taken."""


_CODES: tuple[tuple[type[Exception], int, grpc.StatusCode], ...] = (
    (UnknownModelError, 404, grpc.StatusCode.NOT_FOUND),
    (QueueFullError, 429, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (TooLargeError, 413, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (DeviceError, 500, grpc.StatusCode.INTERNAL),
    (HipdnnMlirError, 400, grpc.StatusCode.INVALID_ARGUMENT),
    (Exception, 500, grpc.StatusCode.INTERNAL),
)


def status_of(error: Exception) -> int:
    """Return HTTP's code for an error."""
    return next(status for kind, status, _ in _CODES if isinstance(error, kind))


def grpc_status_of(error: Exception) -> grpc.StatusCode:
    """Return gRPC's code for an error."""
    return next(code for kind, _, code in _CODES if isinstance(error, kind))
