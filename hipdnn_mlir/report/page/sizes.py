"""A program's JSON at given sizes of its dynamic dimensions: numbers in the place of expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hipdnn_mlir_runtime.abi import Attribute, Descriptor
from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.expressions import OPERATORS, REFERENCE

Json = dict[str, Any]


def chosen_sizes(program: Json, sizes: Mapping[str, int]) -> dict[str, int]:
    """A size for each dynamic dimension: the one given, else the largest bucket.

    Raises:
        ModelError: A name is unknown, a size is open, or the file has no program for the sizes.
    """
    symbols: list[str] = program.get("symbols", [])
    unknown = [name for name in sizes if name not in symbols]
    if unknown:
        expected = ", ".join(symbols) or "none: no dimension of the program is dynamic"
        raise ModelError(f"no dynamic dimension {unknown[0]!r}", expected=expected)
    buckets = dict(zip(symbols, program.get("buckets", []), strict=False))
    open_sizes = [name for name in symbols if name not in sizes and not buckets.get(name)]
    if open_sizes:
        given = " ".join(f"--shape '{name}=1'" for name in open_sizes)
        hint = f"give each a number, since bytes and steps depend on them: {given}"
        raise ModelError(f"the sizes of {', '.join(open_sizes)} are open", hint=hint)
    return {name: sizes[name] if name in sizes else buckets[name][-1] for name in symbols}


def body_at(program: Json, sizes: Mapping[str, int]) -> Json:
    """What a program does at these sizes: the fields of its body, with executables and kernels.

    Steps whose graph has a tensor without elements are left out, as the runtime leaves them out.

    Args:
        program: The JSON object of a file.
        sizes: A number per symbol.

    Raises:
        ModelError: The file holds a program for each combination of buckets, and none for these sizes.
    """
    if program.get("specializations"):
        return _specialization(program, sizes)
    values = _values(program, sizes)
    body: Json = {
        key: _with_values(program.get(key, []), values)
        for key in ("inputs", "outputs", "constants", "buffers", "steps", "refused", "executables", "kernels")
    }
    if sizes:
        dropped = {index for index, made in enumerate(body["executables"]) if _is_empty(made)}
        body["steps"] = [step for step in body["steps"] if step.get("executable") not in dropped]
    return body


def _specialization(program: Json, sizes: Mapping[str, int]) -> Json:
    wanted = [sizes[name] for name in program["symbols"]]
    for made in program["specializations"]:
        if made["sizes"] == wanted:
            pools = {key: [program[key][index] for index in made[key]] for key in ("executables", "kernels")}
            return {"refused": [], **made, **pools}
    known = "; ".join(
        ", ".join(f"{name}={size}" for name, size in zip(program["symbols"], made["sizes"], strict=True))
        for made in program["specializations"]
    )
    raise ModelError("the file has no program for these sizes", expected=f"one of: {known}", got=str(dict(sizes)))


def _values(program: Json, sizes: Mapping[str, int]) -> list[int]:
    """The value of each expression: operands are numbers or earlier entries."""
    values: list[int] = []
    for name, *operands in program.get("expressions", []):
        if name == "symbol":
            values.append(sizes[program["symbols"][operands[0]]])
        else:
            a, b = (values[side[REFERENCE]] if isinstance(side, dict) else side for side in operands)
            values.append(OPERATORS[name](a, b))
    return values


def _with_values(item: Any, values: list[int]) -> Any:
    if isinstance(item, list):
        return [_with_values(part, values) for part in item]
    if isinstance(item, dict):
        if item.keys() == {REFERENCE}:
            return values[item[REFERENCE]]
        return {key: _with_values(part, values) for key, part in item.items()}
    return item


def _is_empty(executable: Json) -> bool:
    return any(
        kind == Descriptor.TENSOR_DESCRIPTOR and name == Attribute.TENSOR_DIMENSIONS and 0 in value
        for kind, attributes in executable["descriptors"]
        for name, _, value in attributes
    )
