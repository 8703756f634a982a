"""A program as an ONNX file for viewers such as Netron: each step is one node of the domain `hipdnn_mlir`. No runtime can run it."""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hipdnn_mlir_runtime import _runtime
from hipdnn_mlir_runtime.atomic_file import written
from hipdnn_mlir_runtime.dtypes import BY_NAME

from .page.sizes import Json, body_at, chosen_sizes
from .page.steps import Operand, Step, modules_of, steps_of

DOMAIN = "hipdnn_mlir"
_VERSION = 1
_IR_VERSION = 10
"""Of ONNX files with a domain of their own and data in another file; viewers of 2024 and later read it."""


def write_partitioned(program: str | Path, output: str | Path, *, sizes: Mapping[str, int] | None = None) -> None:
    """Write a program file's steps as an ONNX graph.

    A node's type is what the step computes. Its attributes are `kind`, `engine`, `operations`, `source_nodes`, `module`, `description`
    (the hipDNN descriptors, or the kernel), `read_bytes`, `written_bytes` and, where it has some, `flops`. Weights are not copied: they are
    external data in the program file, which tools look for beside the ONNX file.

    Args:
        program: The `.hipdnn` file.
        output: The ONNX file to write, best in the folder of the program.
        sizes: A number per dynamic dimension; one with buckets is shown at the largest where nothing is given.

    Raises:
        ProgramError: The file is not a program, is broken, or has another format.
        ModelError: A size is open or unknown.
        HipdnnMlirError: The file cannot be written.
    """
    model = partitioned_model(Path(program), sizes=sizes)
    with written(output) as file:
        file.write(model.SerializeToString())


def partitioned_model(program: Path, *, sizes: Mapping[str, int] | None = None) -> onnx.ModelProto:
    """The model that `write_partitioned` writes; arguments as there."""
    parsed = _runtime.Program.load(str(program))
    data: Json = json.loads(parsed.text)
    return _Export(program, data, body_at(data, chosen_sizes(data, sizes or {}))).model()


class _Export:
    def __init__(self, path: Path, program: Json, body: Json) -> None:
        self._path, self._program, self._body = path, program, body
        self._steps, self._written = steps_of(body)
        self._modules = modules_of(body)
        self._taken: Counter[str] = Counter()
        # Ports first: they keep their names.
        self._ports = {port["buffer"]: self._name(port["name"], "port") for port in [*body["inputs"], *body["outputs"]]}
        self._constants = {made["buffer"]: self._name(made["tensor"], "weight") for made in body["constants"]}
        self._values: dict[tuple[int, int], list[str]] = {}
        self._types: list[onnx.ValueInfoProto] = []

    def model(self) -> onnx.ModelProto:
        nodes = [self._node(index, step) for index, step in enumerate(self._steps)]
        nodes += [
            self._join(port["buffer"]) for port in self._body["outputs"] if self._sole_writer(port["buffer"]) is None
        ]
        graph = helper.make_graph(
            nodes,
            self._program["model"].get("name") or "program",
            [self._port(port) for port in self._body["inputs"]],
            [self._port(port) for port in self._body["outputs"]],
            self._initializers(),
            value_info=self._types,
        )
        made = helper.make_model(
            graph,
            producer_name="hipdnn-mlir",
            producer_version=self._program["producer"].get("hipdnn_mlir", ""),
            opset_imports=[helper.make_opsetid(DOMAIN, _VERSION)],
        )
        made.ir_version = _IR_VERSION
        helper.set_model_props(made, {"target": self._program["target"]})
        return made

    def _name(self, wanted: str, otherwise: str) -> str:
        """A name that no other value has."""
        name = wanted or otherwise
        while self._taken[name]:
            name += "_"
        self._taken[name] += 1
        return name

    def _sole_writer(self, buffer: int) -> int | None:
        """The step whose result an output is; None where several steps wrote it, or none."""
        writers = self._written[buffer]
        if len(writers) != 1:
            return None
        outs = [
            operand for operand in self._steps[writers[0]].operands if (operand.role, operand.buffer) == ("out", buffer)
        ]
        return writers[0] if len(outs) == 1 else None

    def _node(self, index: int, step: Step) -> onnx.NodeProto:
        inputs = [name for operand in step.operands if operand.role == "in" for name in self._sources(operand)]
        outputs = [self._result(index, operand) for operand in step.operands if operand.role == "out"]
        flops = {} if step.flops is None else {"flops": step.flops}
        attributes: dict[str, Any] = {
            "kind": step.kind,
            "engine": step.engine,
            "operations": step.operations.split(" + "),
            "source_nodes": step.nodes.split("+"),
            "module": step.module,
            "description": self._modules.get(step.module, [""]),
            "read_bytes": step.read_bytes,
            "written_bytes": step.written_bytes,
            **flops,
        }
        kind = re.sub(r"\W+", "_", step.operations, flags=re.ASCII).strip("_") or step.kind
        name = f"{index}: {step.nodes}" if step.nodes else str(index)
        return helper.make_node(kind, inputs, outputs, name=name, domain=DOMAIN, **attributes)

    def _sources(self, operand: Operand) -> list[str]:
        """The values that lie where an operand is."""
        if operand.writers:
            return [name for step in operand.writers for name in self._values[step, operand.buffer]]
        known = self._ports.get(operand.buffer) or self._constants.get(operand.buffer)
        return [known] if known else []

    def _result(self, index: int, operand: Operand) -> str:
        if self._sole_writer(operand.buffer) == index and operand.buffer in self._ports:
            name = self._ports[operand.buffer]
        else:
            name = self._name(f"step_{index}", "")
            dtype = operand.dtype or "u8"
            if dtype in BY_NAME:
                self._types.append(helper.make_tensor_value_info(name, _type(dtype), operand.dims))
        self._values.setdefault((index, operand.buffer), []).append(name)
        return name

    def _join(self, buffer: int) -> onnx.NodeProto:
        """The node that stands for an output which several steps wrote parts of."""
        parts = [name for step in self._written[buffer] for name in self._values[step, buffer]]
        return helper.make_node(
            "parts", parts, [self._ports[buffer]], name=f"parts of {self._ports[buffer]}", domain=DOMAIN
        )

    def _port(self, port: Json) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(self._ports[port["buffer"]], _type(port["dtype"]), port["dims"])

    def _initializers(self) -> list[onnx.TensorProto]:
        header, start = _tensor_header(self._path)
        found = []
        for made in self._body["constants"]:
            name = self._constants[made["buffer"]]
            if made.get("values") is not None:
                found.append(_computed(made, name))
                continue
            row = header[made["tensor"]]
            begin, end = row["data_offsets"]
            found.append(
                _stored(name, row["dtype"].lower(), row["shape"], self._path.name, (start + begin, end - begin))
            )
        return found


def _type(dtype: str) -> int:
    return int(TensorProto.DataType.Value(BY_NAME[dtype].onnx))


def _tensor_header(path: Path) -> tuple[dict[str, Any], int]:
    """The header of a program file, which has been checked before, and where the data begins."""
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(size)), 8 + size


def _stored(name: str, dtype: str, dims: list[int], location: str, place: tuple[int, int]) -> onnx.TensorProto:
    tensor = TensorProto(name=name, data_type=_type(dtype), dims=dims)
    if not place[1]:
        tensor.raw_data = b""
        return tensor
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": place[0], "length": place[1]}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _computed(made: Json, name: str) -> onnx.TensorProto:
    dtype = BY_NAME[made.get("dtype", "f32")].numpy
    dims = made.get("dims", [])
    values = np.array(made["values"], dtype)
    array = np.full(dims, values[0], dtype) if values.size == 1 else values.reshape(dims)
    return numpy_helper.from_array(array, name)
