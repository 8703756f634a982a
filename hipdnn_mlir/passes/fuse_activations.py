"""hipdnn-fuse-activations: activations that exporters write out in arithmetic become one op each."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import erase_dead, functions, operations
from ..ir.module_pass import module_pass
from ..ir.terms import Product, fused_location, is_float_tensor, is_private, is_read, number, product, total
from ..ir.types import tensor_type
from ..ir.view import producer

_ROOTS = (torch.AtenMulTensorOp, torch.AtenMulScalarOp, torch.AtenDivTensorOp, torch.AtenDivScalarOp)
_ARITHMETIC = (
    *_ROOTS, torch.AtenAddTensorOp, torch.AtenAddScalarOp, torch.AtenSubTensorOp, torch.AtenSubScalarOp, torch.AtenNegOp,
    torch.AtenPowTensorScalarOp, torch.AtenSquareOp, torch.AtenErfOp, torch.AtenTanhOp, torch.AtenSigmoidOp, torch.AtenClampOp,
    torch.AtenClampTensorOp, torch.AtenHardtanhOp, torch.AtenRelu6Op, torch.AtenHardsigmoidOp,
)  # fmt: skip
_TOLERANCE = 2e-3
"""Relative: f16 and bf16 models have their coefficients in these types, and exporters round 1.702 and 0.044715."""
_MAX_DEPTH = 12
_QUICK_GELU = 1.702


@dataclass(frozen=True)
class Match:
    """An activation of `x`: what makes it, its input factor (1 but for quick GELU), and the ops that wrote it out."""

    make: Callable[[ir.Type, ir.Value], ir.Value]
    x: ir.Value
    operations: list[ir.OpView]
    beta: float = 1.0


@module_pass("hipdnn-fuse-activations")
def fuse_activations(module: ir.Operation) -> None:
    """Recognize GELU (erf and tanh), quick GELU, SiLU and hard swish in any association of their products, and write them as one op.

    Quick GELU, x * sigmoid(beta * x), becomes `silu(beta * x) / beta`: engines take that as a chain. What is written out stays where
    something else reads a part of it.

    Before: `%s = torch.aten.sigmoid %x`; `%y = torch.aten.mul.Tensor %x, %s`. After: `%y = torch.aten.silu %x`.
    """
    for function in functions(module):
        for op in reversed(operations(function)):
            if isinstance(op, _ROOTS) and is_read(op) and is_float_tensor(op.result):
                match = _match(op)
                if match is not None:
                    _replace(op, match)
        erase_dead(function)


def _match(root: ir.OpView) -> Match | None:
    for factor in product(root.result).factors:
        gate = producer(factor)
        for rule in _RULES.get(type(gate), ()):
            for x in _inputs(factor):
                match = rule(root, gate, x)
                if match is not None and match.x.type == root.result.type and is_private(match.operations, root):
                    return match
    return None


def _inputs(factor: ir.Value) -> list[ir.Value]:
    """The float tensors that a factor is computed from, nearest first, through arithmetic only."""
    found: list[ir.Value] = []
    level = [factor]
    for _ in range(_MAX_DEPTH):
        level = [
            v
            for value in level
            if isinstance(op := producer(value), _ARITHMETIC)
            for v in op.operands
            if is_float_tensor(v) and number(v) is None and v not in found
        ]
        found += list(dict.fromkeys(level))
        if len(found) > 2 * _MAX_DEPTH:
            break
    return found


def _is_near(got: float, want: float) -> bool:
    return math.isclose(got, want, rel_tol=_TOLERANCE)


def _is_multiple(value: ir.Value, x: ir.Value, operations: list[ir.OpView]) -> float | None:
    """The coefficient c where the value is c * x, or None; the ops seen through are added."""
    found = product(value, [x])
    if found.factors != [x] or found.divisors:
        return None
    operations += found.operations
    return found.coefficient


def _outer(root: ir.OpView, x: ir.Value, gate: ir.OpView, coefficient: float) -> list[ir.OpView] | None:
    """The ops of the root product where it is coefficient * x * gate, or None."""
    whole = product(root.result, [x, gate.result])
    fits = _is_near(whole.coefficient, coefficient) and not whole.divisors and len(whole.factors) == 2
    return whole.operations if fits and x in whole.factors and gate.result in whole.factors else None


def _sigmoid(root: ir.OpView, gate: torch.AtenSigmoidOp, x: ir.Value) -> Match | None:
    """X * sigmoid(beta * x)."""
    operations = _outer(root, x, gate, 1.0)
    if operations is None:
        return None
    operations = [*operations, gate]
    beta = _is_multiple(gate.self_, x, operations)
    if beta == float(np.asarray(_QUICK_GELU, tensor_type(x.type).dtype.numpy)):
        beta = _QUICK_GELU  # as the types of models round it
    return None if not beta else Match(torch.aten_silu, x, operations, beta)


def _one_plus(root: ir.OpView, gate: torch.AtenAddTensorOp | torch.AtenAddScalarOp, x: ir.Value) -> Match | None:
    """X * (1 + erf(x / sqrt 2)) / 2, or x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2."""
    operations = _outer(root, x, gate, 0.5)
    inner = total(gate.result)
    if operations is None or not _is_near(inner.constant, 1.0) or len(inner.terms) != 1:
        return None
    function = producer(inner.terms[0])
    operations = [*operations, *inner.operations, function]
    if isinstance(function, torch.AtenErfOp):
        beta = _is_multiple(function.self_, x, operations)
        return Match(_gelu, x, operations) if beta is not None and _is_near(beta, math.sqrt(0.5)) else None
    if isinstance(function, torch.AtenTanhOp) and _is_cubic(function.self_, x, operations):
        return Match(_gelu_tanh, x, operations)
    return None


def _is_cubic(value: ir.Value, x: ir.Value, operations: list[ir.OpView]) -> bool:
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


def _polynomial(terms: list[ir.Value], x: ir.Value, operations: list[ir.OpView]) -> dict[int, float]:
    """Coefficients by power of x; a term of something else counts as power -1."""
    powers: dict[int, float] = {}
    for term in terms:
        found: Product = product(term, [x])
        operations += found.operations
        power = len(found.factors) if all(factor == x for factor in found.factors) and not found.divisors else -1
        powers[power] = powers.get(power, 0.0) + found.coefficient
    return powers


def _clipped(root: ir.OpView, gate: ir.OpView, x: ir.Value) -> Match | None:
    """X * clamp(x + 3, 0, 6) / 6."""
    operations = _outer(root, x, gate, 1 / 6)
    if operations is None or _bounds(gate) != (0, 6):
        return None
    inner = total(gate.self_)
    if inner.terms != [x] or not _is_near(inner.constant, 3.0):
        return None
    return Match(torch.aten_hardswish, x, [*operations, gate, *inner.operations])


def _bounds(clip: ir.OpView) -> tuple[float | None, float | None]:
    match clip:
        case torch.AtenRelu6Op():
            return 0, 6
        case torch.AtenHardtanhOp():
            return number(clip.min_val), number(clip.max_val)
    return number(clip.min), number(clip.max)


def _hard_sigmoid(root: ir.OpView, gate: torch.AtenHardsigmoidOp, x: ir.Value) -> Match | None:
    """X * hardsigmoid(x)."""
    operations = _outer(root, x, gate, 1.0)
    if operations is None or gate.self_ != x:
        return None
    return Match(torch.aten_hardswish, x, [*operations, gate])


_RULES: dict[type[ir.OpView], tuple[Callable[[ir.OpView, ir.OpView, ir.Value], Match | None], ...]] = {
    torch.AtenSigmoidOp: (_sigmoid,),
    torch.AtenAddTensorOp: (_one_plus,),
    torch.AtenAddScalarOp: (_one_plus,),
    torch.AtenClampOp: (_clipped,),
    torch.AtenClampTensorOp: (_clipped,),
    torch.AtenHardtanhOp: (_clipped,),
    torch.AtenRelu6Op: (_clipped,),
    torch.AtenHardsigmoidOp: (_hard_sigmoid,),
}


def _gelu(kind: ir.Type, x: ir.Value) -> ir.Value:
    return torch.aten_gelu(kind, x, torch.constant_str("none"))


def _gelu_tanh(kind: ir.Type, x: ir.Value) -> ir.Value:
    return torch.aten_gelu(kind, x, torch.constant_str("tanh"))


def _replace(root: ir.OpView, match: Match) -> None:
    kind = match.x.type
    with ir.InsertionPoint(root), fused_location([*match.operations, root]):
        if match.beta == 1:
            made = match.make(kind, match.x)
        else:
            scaled = torch.aten_mul_Scalar(kind, match.x, torch.constant_float(match.beta))
            activated = match.make(kind, scaled)
            made = torch.aten_mul_Scalar(kind, activated, torch.constant_float(1 / match.beta))
    root.result.replace_all_uses_with(made)
