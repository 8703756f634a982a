"""The messages of the Open Inference Protocol's gRPC service, as its specification numbers their fields.

They are made in a pool of their own, since their names are those of every other implementation, one of which a client may have imported.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "inference"
SERVICE = f"{PACKAGE}.GRPCInferenceService"

_NAMED = "string name=1; string version=2"
_TENSOR = "string name=1; string datatype=2; repeated int64 shape=3"
_MESSAGES = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "bool live=1",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "bool ready=1",
    "ModelReadyRequest": _NAMED,
    "ModelReadyResponse": "bool ready=1",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": f"{_NAMED}; repeated string extensions=3",
    "ModelMetadataRequest": _NAMED,
    "ModelMetadataResponse": "string name=1; repeated string versions=2; string platform=3;"
    "repeated ModelMetadataResponse.TensorMetadata inputs=4; repeated ModelMetadataResponse.TensorMetadata outputs=5",
    "ModelMetadataResponse.TensorMetadata": _TENSOR,
    "InferParameter": "bool bool_param=1; int64 int64_param=2; string string_param=3; double double_param=4;"
    "uint64 uint64_param=5",
    "InferTensorContents": "repeated bool bool_contents=1; repeated int32 int_contents=2; repeated int64 int64_contents=3;"
    "repeated uint32 uint_contents=4; repeated uint64 uint64_contents=5; repeated float fp32_contents=6;"
    "repeated double fp64_contents=7; repeated bytes bytes_contents=8",
    "ModelInferRequest": "string model_name=1; string model_version=2; string id=3; map InferParameter parameters=4;"
    "repeated ModelInferRequest.InferInputTensor inputs=5;"
    "repeated ModelInferRequest.InferRequestedOutputTensor outputs=6; repeated bytes raw_input_contents=7",
    "ModelInferRequest.InferInputTensor": f"{_TENSOR}; map InferParameter parameters=4; InferTensorContents contents=5",
    "ModelInferRequest.InferRequestedOutputTensor": "string name=1; map InferParameter parameters=2",
    "ModelInferResponse": "string model_name=1; string model_version=2; string id=3; map InferParameter parameters=4;"
    "repeated ModelInferResponse.InferOutputTensor outputs=5; repeated bytes raw_output_contents=6",
    "ModelInferResponse.InferOutputTensor": f"{_TENSOR}; map InferParameter parameters=4; InferTensorContents contents=5",
}
"""Message -> its fields. A map has strings as keys. All fields of `InferParameter` are alternatives."""
_ONE_OF = {"InferParameter": "parameter_choice"}
METHODS = ("ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer")
"""Of the service; the messages of each end with Request and Response."""

_Field = descriptor_pb2.FieldDescriptorProto


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="open_inference.proto", package=PACKAGE, syntax="proto3")
    made: dict[str, Any] = {}
    for path in sorted(_MESSAGES, key=lambda path: path.count(".")):
        outer, _, name = path.rpartition(".")
        made[path] = (made[outer].nested_type if outer else file.message_type).add(name=name)
        if path in _ONE_OF:
            made[path].oneof_decl.add(name=_ONE_OF[path])
        for text in filter(None, map(str.strip, _MESSAGES[path].split(";"))):
            _add_field(made[path], path, text)
    return file


def _add_field(message: Any, path: str, text: str) -> None:
    *words, name = text.partition("=")[0].split()
    field = message.field.add(name=name, number=int(text.partition("=")[2]), label=_Field.LABEL_OPTIONAL)
    if words[0] == "map":
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _add_field(entry, path, "string key=1")
        _add_field(entry, path, f"{words[1]} value=2")
        field.label, words = _Field.LABEL_REPEATED, [f"{path}.{entry.name}"]
    elif words[0] == "repeated":
        field.label, words = _Field.LABEL_REPEATED, words[1:]
    scalar = f"TYPE_{words[0].upper()}"
    if scalar in _Field.Type.keys():  # noqa: SIM118 - not a dict
        field.type = _Field.Type.Value(scalar)
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{PACKAGE}.{words[0]}"
    if path in _ONE_OF and message.name == path:
        field.oneof_index = 0


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_file())


_CLASSES: dict[str, Any] = {
    name: message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))
    for name in _MESSAGES
    if "." not in name
}
for _class in _CLASSES.values():
    _class.__module__ = __name__  # pickle looks there: Serve's proxy in Python sends messages to replicas through Ray
globals().update(_CLASSES)


def message(name: str) -> Any:
    """Return the class of a message."""
    return _CLASSES[name]
