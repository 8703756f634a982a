"""hipdnn-fuse-activations: activations that exporters write out in arithmetic become one op each."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import body, erase_dead, functions
from ..ir.module_pass import module_pass
from ..ir.terms import Product, fused_location, is_float_tensor, is_private, is_read, number, product, total
from ..ir.types import tensor_type
from ..ir.view import defining

_ROOTS = ("torch.aten.mul.Tensor", "torch.aten.mul.Scalar", "torch.aten.div.Tensor", "torch.aten.div.Scalar")
_TOLERANCE = 2e-3
"""Relative: f16 and bf16 models have their coefficients in these types, and exporters round 1.702 and 0.044715."""
_MAX_DEPTH = 12
_QUICK_GELU = 1.702


@dataclass(frozen=True)
class Match:
    """An activation of `x`: the op it is, its input factor (1 but for quick GELU), and the ops that wrote it out."""

    name: str
    x: Any
    operations: list[Any]
    beta: float = 1.0


@module_pass("hipdnn-fuse-activations")
def fuse_activations(module: Any) -> None:
    """Recognize GELU (erf and tanh), quick GELU, SiLU and hard swish in any association of their products, and write them as one op.

    Quick GELU, x * sigmoid(beta * x), becomes `silu(beta * x) / beta`: engines take that as a chain. What is written out stays where
    something else reads a part of it.

    Before: `%s = torch.aten.sigmoid %x`; `%y = torch.aten.mul.Tensor %x, %s`. After: `%y = torch.aten.silu %x`.
    """
    for function in functions(module):
        for operation in reversed(body(function)):
            if operation.name in _ROOTS and is_read(operation) and is_float_tensor(operation.results[0]):
                match = _match(operation)
                if match is not None:
                    _replace(operation, match)
        erase_dead(function)


def _match(root: Any) -> Match | None:
    whole = product(root.results[0])
    for factor in whole.factors:
        for rule in _RULES.get(_name(factor), ()):
            for x in _inputs(factor):
                match = rule(root, factor, x)
                if match is not None and match.x.type == root.results[0].type and is_private(match.operations, root):
                    return match
    return None


def _name(value: Any) -> str:
    source = defining(value)
    return source.name if source is not None else ""


def _inputs(factor: Any) -> list[Any]:
    """The float tensors that a factor is computed from, nearest first, through arithmetic only."""
    found: list[Any] = []
    level = [factor]
    for _ in range(_MAX_DEPTH):
        sources = [source for value in level if (source := defining(value)) is not None and _is_arithmetic(source.name)]
        level = [
            v
            for source in sources
            for v in source.operands
            if is_float_tensor(v) and number(v) is None and v not in found
        ]
        found += list(dict.fromkeys(level))
        if len(found) > 2 * _MAX_DEPTH:
            break
    return found


def _is_arithmetic(name: str) -> bool:
    return name.startswith("torch.aten.") and name.split(".")[2] in _ARITHMETIC


_ARITHMETIC = frozenset({"mul", "div", "add", "sub", "pow", "square", "neg", "erf", "tanh", "sigmoid", "clamp", "hardtanh", "relu6",
                         "hardsigmoid"})  # fmt: skip


def _is_near(got: float, want: float) -> bool:
    return math.isclose(got, want, rel_tol=_TOLERANCE)


def _is_multiple(value: Any, x: Any, operations: list[Any]) -> float | None:
    """The coefficient c where the value is c * x, or None; the ops seen through are added."""
    found = product(value, [x])
    if found.factors != [x] or found.divisors:
        return None
    operations += found.operations
    return found.coefficient


def _outer(root: Any, x: Any, gate: Any, coefficient: float) -> list[Any] | None:
    """The ops of the root product where it is coefficient * x * gate, or None."""
    whole = product(root.results[0], [x, gate])
    fits = _is_near(whole.coefficient, coefficient) and not whole.divisors and len(whole.factors) == 2
    return whole.operations if fits and x in whole.factors and gate in whole.factors else None


def _sigmoid(root: Any, gate: Any, x: Any) -> Match | None:
    """X * sigmoid(beta * x)."""
    operations = _outer(root, x, gate, 1.0)
    if operations is None:
        return None
    function: Any = defining(gate)
    operations = [*operations, function]
    beta = _is_multiple(function.operands[0], x, operations)
    if beta == float(np.asarray(_QUICK_GELU, tensor_type(x.type).dtype.numpy)):
        beta = _QUICK_GELU  # as the types of models round it
    return None if not beta else Match("torch.aten.silu", x, operations, beta)


def _one_plus(root: Any, gate: Any, x: Any) -> Match | None:
    """X * (1 + erf(x / sqrt 2)) / 2, or x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2."""
    operations = _outer(root, x, gate, 0.5)
    inner = total(gate)
    if operations is None or not _is_near(inner.constant, 1.0) or len(inner.terms) != 1:
        return None
    operations = [*operations, *inner.operations]
    function = defining(inner.terms[0])
    if function is None:
        return None
    operations.append(function)
    if function.name == "torch.aten.erf":
        beta = _is_multiple(function.operands[0], x, operations)
        return Match("gelu.none", x, operations) if beta is not None and _is_near(beta, math.sqrt(0.5)) else None
    if function.name == "torch.aten.tanh" and _is_cubic(function.operands[0], x, operations):
        return Match("gelu.tanh", x, operations)
    return None


def _is_cubic(value: Any, x: Any, operations: list[Any]) -> bool:
    """sqrt(2 / pi) * (x + 0.044715 x^3), or the same with x in front of the parentheses."""
    outer = product(value, [x])
    operations += outer.operations
    sums = [factor for factor in outer.factors if factor != x]
    if outer.divisors or len(sums) != 1 or not _is_near(outer.coefficient, math.sqrt(2 / math.pi)):
        return False
    inner = total(sums[0])
    operations += inner.operations
    powers = _polynomial(inner.terms, x, operations)
    powers[0] = powers.get(0, 0.0) + inner.constant
    shift = len(outer.factors) - 1
    expected = {1 - shift: 1.0, 3 - shift: 0.044715}
    return all(_is_near(powers.get(power, 0.0), expected.get(power, 0.0)) for power in {*powers, *expected})


def _polynomial(terms: list[Any], x: Any, operations: list[Any]) -> dict[int, float]:
    """Coefficients by power of x; a term of something else counts as power -1."""
    powers: dict[int, float] = {}
    for term in terms:
        found: Product = product(term, [x])
        operations += found.operations
        power = len(found.factors) if all(factor == x for factor in found.factors) and not found.divisors else -1
        powers[power] = powers.get(power, 0.0) + found.coefficient
    return powers


def _clipped(root: Any, gate: Any, x: Any) -> Match | None:
    """X * clamp(x + 3, 0, 6) / 6."""
    operations = _outer(root, x, gate, 1 / 6)
    clip: Any = defining(gate)
    if operations is None or (clip.name != "torch.aten.relu6" and _bounds(clip) != [0, 6]):
        return None
    inner = total(clip.operands[0])
    if inner.terms != [x] or not _is_near(inner.constant, 3.0):
        return None
    return Match("torch.aten.hardswish", x, [*operations, clip, *inner.operations])


def _bounds(clip: Any) -> list[float | None]:
    return [number(value) for value in list(clip.operands)[1:3]]


def _hard_sigmoid(root: Any, gate: Any, x: Any) -> Match | None:
    """X * hardsigmoid(x)."""
    operations = _outer(root, x, gate, 1.0)
    function: Any = defining(gate)
    if operations is None or function.operands[0] != x:
        return None
    return Match("torch.aten.hardswish", x, [*operations, function])


_RULES: dict[str, tuple[Callable[[Any, Any, Any], Match | None], ...]] = {
    "torch.aten.sigmoid": (_sigmoid,),
    "torch.aten.add.Tensor": (_one_plus,),
    "torch.aten.add.Scalar": (_one_plus,),
    "torch.aten.clamp": (_clipped,),
    "torch.aten.clamp.Tensor": (_clipped,),
    "torch.aten.hardtanh": (_clipped,),
    "torch.aten.relu6": (_clipped,),
    "torch.aten.hardsigmoid": (_hard_sigmoid,),
}


def _replace(root: Any, match: Match) -> None:
    kind = match.x.type
    with ir.InsertionPoint(root), fused_location([*match.operations, root]):
        if match.name.startswith("gelu."):
            made = _op("torch.aten.gelu", kind, match.x, torch.constant_str(match.name.removeprefix("gelu.")))
        elif match.beta == 1:
            made = _op(match.name, kind, match.x)
        else:
            scaled = _op("torch.aten.mul.Scalar", kind, match.x, torch.constant_float(match.beta))
            made = _op(
                "torch.aten.mul.Scalar", kind, _op(match.name, kind, scaled), torch.constant_float(1 / match.beta)
            )
    root.results[0].replace_all_uses_with(made)


def _op(name: str, kind: Any, *operands: Any) -> Any:
    return ir.Operation.create(name, results=[kind], operands=list(operands)).result
