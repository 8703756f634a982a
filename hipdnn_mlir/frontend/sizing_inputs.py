"""Inputs that sizes of results follow from: what they have to hold for the sizes that a model declares, which a program takes."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any

import onnx

from ..ir.view import KNOWN
from ..ops.strides import Dims
from .operands import sizing_operand
from .shape_inference import attributes_of, ints, static_dims

Numbers = list[list[int]]
"""Per element the numbers that it may be."""
MOST_NUMBERS = 64
"""Elements of an input that is looked at: more than a tensor has dims."""
_BEHIND_ALL = ((1 << 31) - 1, (1 << 63) - 1)
"""What exporters write for an end that is the last."""
Rule = Callable[[Mapping[str, Any], Dims, Sequence[Dims], int], "Numbers | None"]


def sizing_inputs(graph: onnx.GraphProto) -> dict[str, Numbers]:
    """What inputs of the graph have to hold that decide sizes, where these are declared; those of which nothing is known are left out.

    Args:
        graph: its values have their inferred types.
    """
    values = (*graph.input, *graph.value_info, *graph.output)
    dims = {value.name: known for value in values if (known := static_dims(value)) is not None}
    dims |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    inputs = {value.name for value in graph.input} - {tensor.name for tensor in graph.initializer}
    constants = {tensor.name: ints(tensor) for tensor in graph.initializer if prod(tensor.dims) <= MOST_NUMBERS}
    found: dict[str, Numbers] = {}
    for node in graph.node:
        name = sizing_operand(node)
        if name not in inputs or not {name, node.input[0], *filter(None, node.output)} <= set(dims):
            continue
        kind = "Reduce" if node.op_type.startswith("Reduce") else node.op_type
        results = [dims[result] for result in node.output if result]
        count = prod(dims[name])
        if count > MOST_NUMBERS:
            continue
        operands = {f"{KNOWN}{i}": constants[each] for i, each in enumerate(node.input) if each in constants}
        numbers = _RULES[kind](attributes_of(node) | operands, dims[node.input[0]], results, count)
        if numbers is not None and len(numbers) == count:
            found[name] = _both(found.get(name, numbers), numbers)
    return found


def _both(one: Numbers, other: Numbers) -> Numbers:
    return [[number for number in a if number in b] for a, b in zip(one, other, strict=True)]


def _exactly(numbers: Sequence[int]) -> Numbers:
    return [[number] for number in numbers]


def _reshape(attributes: Mapping[str, Any], data: Dims, results: Sequence[Dims], _: int) -> Numbers:
    copies = not attributes.get("allowzero", 0)
    return [
        [size, -1, *([0] if copies and axis < len(data) and data[axis] == size else [])]
        for axis, size in enumerate(results[0])
    ]


def _expand(_: Mapping[str, Any], data: Dims, results: Sequence[Dims], count: int) -> Numbers | None:
    if len(results[0]) < len(data):
        return None
    padded = (1,) * (len(results[0]) - len(data)) + tuple(data)
    pairs = list(zip(results[0], padded, strict=True))[-count:]
    return [[size, 1] if size == own else [size] for size, own in pairs]


def _tile(_: Mapping[str, Any], data: Dims, results: Sequence[Dims], __: int) -> Numbers | None:
    if 0 in data or len(data) != len(results[0]):
        return None
    return _exactly([after // before for before, after in zip(data, results[0], strict=True)])


def _split(attributes: Mapping[str, Any], data: Dims, results: Sequence[Dims], __: int) -> Numbers | None:
    return _along(attributes.get("axis", 0), data, results)


def _top_k(attributes: Mapping[str, Any], data: Dims, results: Sequence[Dims], __: int) -> Numbers | None:
    return _along(attributes.get("axis", -1), data, results[:1])


def _along(axis: int, data: Dims, results: Sequence[Dims]) -> Numbers | None:
    fits = -len(data) <= axis < len(data) and all(len(result) == len(data) for result in results)
    return _exactly([result[axis] for result in results]) if fits else None


def _reduced(attributes: Mapping[str, Any], data: Dims, results: Sequence[Dims], count: int) -> Numbers | None:
    if not attributes.get("keepdims", 1):
        return _axes_between(data, results[0], count)
    if len(data) != len(results[0]):
        return None
    needed = [axis for axis, size in enumerate(data) if size != results[0][axis]]
    # A dim of one element may be reduced or not.
    spare = [axis for axis, size in enumerate(data) if size == 1] if count > len(needed) else []
    return _named([*needed, *spare], len(data), count)


def _axes_between(more: Dims, fewer: Dims, count: int) -> Numbers:
    """Sets of axes of `more` without which it is `fewer`, in any order."""
    sets = [
        axes
        for axes in combinations(range(len(more)), count)
        if tuple(size for axis, size in enumerate(more) if axis not in axes) == tuple(fewer)
    ]
    return _named(sorted({axis for axes in sets for axis in axes}), len(more), count)


def _axes_of(attributes: Mapping[str, Any], _: Dims, results: Sequence[Dims], __: int) -> Numbers | None:
    """The sizes of the result along the axes that a node names, where it takes them as they are."""
    if attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return None
    return _exactly([results[0][axis] for axis in attributes.get("axes", range(len(results[0])))])


def _slice(attributes: Mapping[str, Any], data: Dims, results: Sequence[Dims], count: int) -> Numbers | None:
    """Ends of slices in steps of one; of all that is left, what exporters write."""
    starts, axes = attributes.get(f"{KNOWN}1", ()), attributes.get(f"{KNOWN}3", range(count))
    if set(attributes.get(f"{KNOWN}4", ())) - {1} or len(starts) != count or 0 in results[0]:
        return None
    ends = [
        (min(max(start + data[axis] if start < 0 else start, 0), data[axis]) + results[0][axis], data[axis])
        for start, axis in zip(starts, axes, strict=True)
    ]
    return [[end, end - size] if end < size else [size, *_BEHIND_ALL] for end, size in ends]


def _named(axes: Sequence[int], rank: int, count: int) -> Numbers:
    """Each of so many elements may be any of these axes, counted from either end."""
    return [[*axes, *(axis - rank for axis in axes)]] * count


_RULES: dict[str, Rule] = {
    "Reshape": _reshape,
    "Expand": _expand,
    "ConstantOfShape": lambda _, __, results, ___: _exactly(results[0]),
    "Tile": _tile,
    "Split": _split,
    "TopK": _top_k,
    "CenterCropPad": _axes_of,
    "Resize": _axes_of,
    "Slice": _slice,
    "Col2Im": lambda _, __, results, ___: _exactly(results[0][2:]),
    "OneHot": lambda attributes, _, results, __: _exactly([results[0][attributes.get("axis", -1)]]),
    **dict.fromkeys(
        ("BlackmanWindow", "HammingWindow", "HannWindow"), lambda _, __, results, ___: _exactly(results[0])
    ),
    "Reduce": _reduced,
    "Squeeze": lambda _, data, results, count: _axes_between(data, results[0], count),
    "Unsqueeze": lambda _, data, results, count: _axes_between(results[0], data, count),
}
