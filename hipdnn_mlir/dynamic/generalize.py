"""One program from the programs of a model at several sample points: numbers that differ become expressions."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from hipdnn_mlir_runtime.dtypes import of_numpy
from hipdnn_mlir_runtime.errors import DynamicDimensionError
from hipdnn_mlir_runtime.expressions import Size, encode

from ..ops.evaluate import Array
from ..ops.graph import json_number
from ..program.schema import Condition, Constant, ProgramModel
from .alignment import loosen
from .facts import Values
from .solver import Solver

MAX_VALUES = 4096
"""Elements of a constant that is computed from sizes."""


def generalize(
    programs: Sequence[ProgramModel], solver: Solver, constants: Sequence[Mapping[str, Array]]
) -> ProgramModel:
    """The program that is each of the given ones at its sizes.

    Args:
        programs: the program at each sample point.
        solver: for those sample points.
        constants: per sample point, the constants whose elements depend on it.

    Raises:
        DynamicDimensionError: a number that is no expression of the symbols, or steps that differ.
    """
    merger = _Merger(solver)
    try:
        made: ProgramModel = merger.merge([_unnamed(program) for program in loosen(programs)], "program")
    except DynamicDimensionError as error:
        error.where = _nodes_at(programs, error.where or "") or error.where
        raise
    for executable in made.executables:
        executable.name = f"g_{_digest(executable.descriptors)}"
    for kernel in made.kernels:
        kernel.name = f"k_{_digest([kernel.function, kernel.tensors, kernel.attributes])}"
    made.constants = [
        _computed(constant, [arrays[constant.tensor] for arrays in constants], merger)
        if constant.tensor in constants[0]
        else constant
        for constant in made.constants
    ]
    made.symbols = list(solver.table.symbols)
    made.conditions = [Condition(*condition, node) for condition, node in solver.conditions.items()]
    made.expressions = solver.table.to_list()
    return made


def _nodes_at(programs: Sequence[ProgramModel], path: str) -> str:
    """The ONNX nodes of what lies at a path in the programs; of the first step that differs, where they differ in number."""
    first = programs[0]
    match = re.match(r"program\.(steps|executables|kernels)(?:\[(\d+)\])?", path)
    if match is None:
        return ""
    if match[1] == "steps" and match[2]:
        return first.steps[int(match[2])].name
    if match[2]:
        numbers = {"executables": "executable", "kernels": "kernel"}[match[1]]
        return next((step.name for step in first.steps if getattr(step, numbers, None) == int(match[2])), "")
    names = [[step.name for step in program.steps] for program in programs]
    return next((same[0] or max(same) for same in zip_longest(*names, fillvalue="") if len(set(same)) > 1), "")


def _unnamed(program: ProgramModel) -> ProgramModel:
    """Without the names that are digests: they differ with the sizes."""
    executables = [replace(executable, name="") for executable in program.executables]
    return replace(program, executables=executables, kernels=[replace(kernel, name="") for kernel in program.kernels])


def _digest(value: Any) -> str:
    text = json.dumps(encode(value), separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class _Merger:
    """Walks programs side by side; `path` says where, for messages."""

    def __init__(self, solver: Solver) -> None:
        self._solver = solver

    def merge(self, parts: Sequence[Any], path: str) -> Any:
        """What the same place holds in all programs."""
        first = parts[0]
        kinds = {type(part) for part in parts}
        if len(kinds) == 1 and is_dataclass(first) and not isinstance(first, type):
            merged = {
                f.name: self.merge([getattr(part, f.name) for part in parts], f"{path}.{f.name}") for f in fields(first)
            }
            return replace(first, **merged)
        if kinds == {dict} and all(part.keys() == first.keys() for part in parts):
            return {key: self.merge([part[key] for part in parts], f"{path}.{key}") for key in first}
        if kinds <= {list, tuple} and all(len(part) == len(first) for part in parts):
            items = (self.merge(items, f"{path}[{i}]") for i, items in enumerate(zip(*parts, strict=True)))
            return type(first)(items)
        if all(part == first for part in parts):
            return first
        if kinds == {int}:
            return self.size(tuple(parts), path)
        raise _failure(path, parts)

    def size(self, values: Values, path: str) -> Size:
        """The expression with these values at the sample points."""
        found = self._solver.solve(values)
        if found is None:
            raise _failure(path, values)
        return found


def _failure(path: str, parts: Sequence[Any]) -> DynamicDimensionError:
    if any(is_dataclass(part) or isinstance(part, (dict, list, tuple)) for part in parts):
        return DynamicDimensionError("the steps of the program differ between sizes of a dynamic dimension", where=path)
    shown = ", ".join(str(part)[:40] for part in parts)
    return DynamicDimensionError(
        "a number cannot be written as an expression of the dynamic dimensions",
        where=path,
        got=f"{shown} at the sample sizes",
    )


def _computed(constant: Constant, arrays: Sequence[Array], merger: _Merger) -> Constant:
    """A constant whose elements are expressions of the symbols; one element stands for all where they are the same."""
    path = f"constant {constant.tensor}"
    dims = merger.merge([array.shape for array in arrays], path)
    if all(array.size and (array == array.flat[0]).all() for array in arrays):
        arrays = [array.reshape(-1)[:1] for array in arrays]
    if len({array.size for array in arrays}) > 1 or arrays[0].size > MAX_VALUES:
        raise _failure(path, [array.tolist() for array in arrays])
    columns = zip(*(array.reshape(-1).tolist() for array in arrays), strict=True)
    values = [_element(column, merger, path) for column in columns]
    return replace(constant, dtype=of_numpy(np.dtype(arrays[0].dtype)).name, dims=dims, values=values)


def _element(column: Sequence[Any], merger: _Merger, path: str) -> Any:
    """A whole number may be an expression, whatever its type; any other number has to be the same at all sample points."""
    if len(set(column)) == 1:
        return json_number(column[0]) if isinstance(column[0], float) else column[0]
    if all(float(number).is_integer() for number in column):
        return merger.size(tuple(int(number) for number in column), path)
    raise _failure(path, column)
