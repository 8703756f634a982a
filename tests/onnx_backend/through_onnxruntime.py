"""Node cases through ONNX Runtime with the provider: who runs a case's nodes, and whether the results are the expected ones."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

from hipdnn_mlir.frontend.operands import sizing_operands
from onnx_backend.values import to_array
from ort_ep import sessions

Result = dict[str, Any]
Assertion = Callable[[Sequence[Any], Sequence[Any]], None]
"""Raises where the first are not the second, which are the expected ones."""

_OPTIONS = {"placement": "maximal", "threads": "1"}


class CaseRunner:
    """Runs cases on the provider and says who ran them.

    - ``passed``: every node ran on the provider, no other being allowed.
    - ``removed``: ONNX Runtime keeps no node of the model, even without optimizations.
    - ``cpu``: right, some nodes ran on the CPU.
    - ``unimplemented``: no provider has a kernel.
    - ``refused``: ONNX Runtime alone fails as well.
    - ``failed``: anything else.

    Args:
        case: Model, inputs and expected outputs.
        cache_dir: Folder for compiled programs.
        assert_similar: Compares outputs within the case's tolerances.
    """

    def __init__(self, case: TestCase, cache_dir: Path, assert_similar: Assertion) -> None:
        self._case = case
        self._cache_dir = cache_dir
        self._assert_similar = assert_similar
        self._model = _loadable(case.model).SerializeToString()

    def run(self) -> Result:
        """Run the case, wholly on the provider where that can be."""
        try:
            return self._run_wholly_placed() or self._run_partly_placed()
        except Exception as error:  # noqa: BLE001 - judged by whether ONNX Runtime alone raises as well
            return self._judge(error)

    def _run_wholly_placed(self) -> Result | None:
        """Run with no other provider allowed, on a model of known sizes; None where some nodes are not taken."""
        model, positions = _with_known_sizes(_loadable(self._case.model), self._case.data_sets)
        # Without optimizations where those leave nothing to place.
        levels = (ort.GraphOptimizationLevel.ORT_ENABLE_ALL, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
        for level in levels:
            settings = sessions.session_options(self._cache_dir, options=_OPTIONS, wholly=True)
            settings.graph_optimization_level = level
            try:
                session = ort.InferenceSession(model.SerializeToString(), settings)
            except Exception as error:
                if "fallback to CPU EP has been explicitly disabled" in str(error):
                    return None
                raise
            session.disable_fallback()
            count = len(sessions.placed_nodes(session)[0])
            if count:
                break
        for inputs, expected in self._case.data_sets:
            found = run(session, [inputs[position] for position in positions if position < len(inputs)])
            self._assert_similar(found, [to_array(value) for value in expected])
        return _result("passed") if count else _result("removed", "no node is left to run")

    def _run_partly_placed(self) -> Result:
        session = sessions.make_session(self._model, self._cache_dir, options=_OPTIONS)
        parts = session.get_provider_graph_assignment_info()
        left = {node.op_type for part in parts if part.ep_name != sessions.EP_NAME for node in part.get_nodes()}
        note = f"{', '.join(sorted(left))} on the CPU"
        placed = sessions.placed_nodes(session)[0]
        for inputs, expected in self._case.data_sets:
            outputs, wanted = run(session, inputs), [to_array(value) for value in expected]
            if self._is_similar(outputs, wanted):
                continue
            note += "; ONNX Runtime alone does not give the expected results either"
            own = run(sessions.reference_session(self._model), inputs)
            # Its own may be random, or what was in memory; where the provider has a part in them, they are to be the same.
            if placed or self._is_similar(own, wanted):
                np.testing.assert_equal(outputs, own)
        return _result("cpu", note)

    def _is_similar(self, outputs: Sequence[Any], expected: Sequence[Any]) -> bool:
        try:
            self._assert_similar(outputs, expected)
        except (AssertionError, TypeError):  # a TypeError for what is no array
            return False
        return True

    def _judge(self, error: Exception) -> Result:
        """Decide whether an error is the provider's or ONNX Runtime's own."""
        try:
            session = sessions.reference_session(self._model)
            for inputs, _ in self._case.data_sets:
                run(session, inputs)
        except NoKernel as own:
            return _result("unimplemented", _text(own))
        except Exception as own:  # noqa: BLE001 - what ONNX Runtime raises without the provider is its own affair
            return _result("refused", _text(own))
        return _result("failed", _text(error))


def _with_known_sizes(model: onnx.ModelProto, data_sets: Sequence[Any]) -> tuple[onnx.ModelProto, list[int]]:
    """The model with constants for inputs that decide sizes, which leave their nodes to the CPU, and the positions of the other inputs."""
    names = [value.name for value in model.graph.input]
    deciding = {name for node in model.graph.node for name in sizing_operands(node)}
    sizing = deciding & set(names) if len(data_sets) == 1 else set()
    for name in sizing:
        value = np.asarray(to_array(data_sets[0][0][names.index(name)]))
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    kept = [value for value in model.graph.input if value.name not in sizing]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    return model, [position for position, name in enumerate(names) if name not in sizing]


def _loadable(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model stamped with versions that ONNX Runtime reads: the expected results show whether it still means the same."""
    restamped = onnx.ModelProto()
    restamped.CopyFrom(model)
    newest = newest_versions()
    restamped.ir_version = min(model.ir_version, newest.ir)
    for entry in restamped.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = min(entry.version, newest.opset)
    return restamped


class Versions(NamedTuple):
    """Of the IR and of the default operator set."""

    ir: int
    opset: int


@functools.cache
def newest_versions() -> Versions:
    """Return the newest versions that the installed ONNX Runtime reads; both grow by one or two per release of ONNX."""
    ir = _newest(range(onnx.IR_VERSION, 0, -1), lambda version: Versions(version, 17))
    return Versions(ir, _newest(range(onnx.defs.onnx_opset_version(), 0, -1), lambda version: Versions(ir, version)))


def _newest(versions: Iterable[int], stamp: Callable[[int], Versions]) -> int:
    ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "probe", ports[:1], ports[1:])
    for version in versions:
        opsets = [onnx.helper.make_opsetid("", stamp(version).opset)]
        model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=stamp(version).ir)
        with contextlib.suppress(Fail, InvalidGraph):
            sessions.reference_session(model)
            return version
    raise AssertionError("ONNX Runtime reads no version at all")


def run(session: ort.InferenceSession, inputs: Sequence[Any]) -> list[Any]:
    """Run a case's inputs, in the model's order."""
    ports = session.get_inputs()
    types = {port.type for port in (*ports, *session.get_outputs())}
    if not all(name.startswith("tensor(") for name in types) or "tensor(string)" in types:
        return list(session.run(None, {p.name: to_array(value) for p, value in zip(ports, inputs, strict=False)}))
    values = {port.name: _to_value(value) for port, value in zip(ports, inputs, strict=False)}
    return [_from_value(value) for value in session.run_with_ort_values(None, values)]


def _to_value(value: Any) -> ort.OrtValue:
    """A tensor by the bytes that ONNX gives it, for ONNX Runtime knows types that its NumPy arrays do not."""
    proto = numpy_helper.from_array(np.asarray(to_array(value)))
    made = ort.OrtValue.ortvalue_from_shape_and_type(list(proto.dims), proto.data_type)
    assert made.tensor_size_in_bytes() == len(proto.raw_data)
    ctypes.memmove(made.data_ptr(), proto.raw_data, len(proto.raw_data))
    return made


def _from_value(value: ort.OrtValue) -> Any:
    bits = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return numpy_helper.to_array(onnx.TensorProto(dims=value.shape(), data_type=value.element_type(), raw_data=bits))


def _result(status: str, *reasons: str) -> Result:
    return {"status": status, "reasons": list(reasons)}


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
