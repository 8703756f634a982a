"""The Open Inference Protocol over gRPC, as methods that Ray Serve calls by their names."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np

from hipdnn_mlir_runtime.errors import HipdnnMlirError, ModelError
from hipdnn_mlir_runtime.session.arrays import Array

from .faults import grpc_status_of, status_of
from .http import server_metadata
from .messages import METHODS, SERVICE, message
from .tensors import InferRequest, check_parameters, datatype_of, dtype_of, from_bytes, from_numbers

if TYPE_CHECKING:
    from .model import ServedModel
    from .repository import ModelFile

_CONTENTS = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    "INT64": "int64_contents",
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
}


def add_service(servicer: Any, server: grpc.Server) -> None:
    """Add the service to a server, as code does that protoc's plugin for gRPC writes."""
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            getattr(servicer, name),
            request_deserializer=message(f"{name}Request").FromString,
            response_serializer=message(f"{name}Response").SerializeToString,
        )
        for name in METHODS
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))


class GrpcMethods:
    """The methods of the service, for a class that has models."""

    model: Callable[..., ServedModel]
    file: Callable[..., ModelFile]
    metadata: Callable[..., dict[str, Any]]
    answered: Callable[[str, int, float], None]

    async def ServerLive(self, _: Any) -> Any:  # noqa: N802 - the protocol's names
        """Say that the server is there."""
        return message("ServerLiveResponse")(live=True)

    async def ServerReady(self, _: Any) -> Any:  # noqa: N802
        """Say that the models are loaded; a replica where they are not gets no requests."""
        return message("ServerReadyResponse")(ready=True)

    async def ServerMetadata(self, _: Any) -> Any:  # noqa: N802
        """Tell name and version; the extensions are HTTP's alone."""
        return message("ServerMetadataResponse")(**server_metadata() | {"extensions": []})

    async def ModelReady(self, request: Any) -> Any:  # noqa: N802
        """Say whether a model is loaded."""
        try:
            self.file(request.name, request.version)
        except HipdnnMlirError:
            return message("ModelReadyResponse")(ready=False)
        return message("ModelReadyResponse")(ready=True)

    async def ModelMetadata(self, request: Any, grpc_context: Any) -> Any:  # noqa: N802
        """Tell inputs and outputs of a model."""
        try:
            return message("ModelMetadataResponse")(**self.metadata(request.name, request.version))
        except HipdnnMlirError as error:
            return _refused(grpc_context, error, "ModelMetadataResponse")

    async def ModelInfer(self, request: Any, grpc_context: Any) -> Any:  # noqa: N802
        """Run a model."""
        start, code = time.perf_counter(), 500
        try:
            model = self.model(request.model_name, request.model_version)
            outputs = await model.infer(_read(request))
            code = 200
        except HipdnnMlirError as error:
            code = status_of(error)
            return _refused(grpc_context, error, "ModelInferResponse")
        finally:
            self.answered(request.model_name, code, time.perf_counter() - start)
        response = message("ModelInferResponse")(
            model_name=model.file.name, model_version=model.file.version, id=request.id
        )
        for name, array in outputs.items():
            response.outputs.add(name=name, datatype=datatype_of(array), shape=array.shape)
            response.raw_output_contents.append(np.ascontiguousarray(array).tobytes())
        return response


def _refused(context: Any, error: HipdnnMlirError, response: str) -> Any:
    context.set_code(grpc_status_of(error))
    context.set_details(str(error))
    return message(response)()


def _read(request: Any) -> InferRequest:
    for kind, entries in (("input", request.inputs), ("output", request.outputs)):
        for entry in entries:
            check_parameters(entry.parameters, f"{kind} '{entry.name}'")
    raw = request.raw_input_contents
    if raw and len(raw) != len(request.inputs):
        expected = f"one for each of {len(request.inputs)} inputs"
        raise ModelError("wrong number of raw_input_contents", expected=expected, got=str(len(raw)))
    inputs: dict[str, Array] = {}
    for index, entry in enumerate(request.inputs):
        where = f"input '{entry.name}'"
        if entry.name in inputs:
            raise ModelError("given twice", where=where)
        if raw:
            inputs[entry.name] = from_bytes(raw[index], entry.datatype, list(entry.shape), where)
            continue
        dtype_of(entry.datatype, where)
        contents = _CONTENTS.get(entry.datatype)
        if contents is None:
            expected = "raw_input_contents"
            raise ModelError(f"{entry.datatype} has no contents of its own", where=where, expected=expected)
        numbers = getattr(entry.contents, contents)
        inputs[entry.name] = from_numbers(list(numbers), entry.datatype, list(entry.shape), where)
    return InferRequest(request.id, inputs, {one.name: True for one in request.outputs} or None)
