"""Torch-dialect modules from sample calls of the op table."""

from __future__ import annotations

from functools import cache
from typing import Any

from hipdnn_mlir.ir.dialect import make_context
from hipdnn_mlir.ir.view import KNOWN
from hipdnn_mlir.ops.registry import ONNX
from hipdnn_mlir.ops.samples import Number, Sample
from hipdnn_mlir.ops.spec import TensorType
from hipdnn_mlir_runtime.dtypes import DType


def tensor(kind: TensorType) -> str:
    """The type as the torch dialect spells it."""
    return f"!torch.vtensor<[{','.join('?' if size is None else str(size) for size in kind.dims)}],{kind.dtype.torch}>"


@cache
def _is_registered(name: str) -> bool:
    """Whether the torch dialect has an op; others are named by `torch.operator`."""
    return bool(make_context().is_registered_operation(name))


def module(sample: Sample) -> str:
    """A module whose @main makes the sample's call and returns its results."""
    text = _Text()
    results = [tensor(kind) for kind in sample.results]
    names = [f"%r{index}" for index in range(len(results))]
    if sample.op.startswith(ONNX):
        text.onnx(", ".join(names), sample, f"({', '.join(results)})")
    else:
        operands = [text.value(arg) for arg in sample.args]
        name, attributes = (
            (sample.op, "") if _is_registered(sample.op) else ("torch.operator", f'{{name = "{sample.op}"}} ')
        )
        text.op(", ".join(names), name, operands, f"({', '.join(results)})", attributes)
    used = len(results) if sample.uses_all else 1
    arguments = ", ".join(f"{name}: {kind}" for name, kind in text.arguments)
    outputs = ", ".join(results[:used])
    lines = [*text.lines, f"return {', '.join(names[:used])} : {outputs}"]
    body = "\n  ".join(lines)
    return f"func.func @main({arguments}) -> ({outputs}) {{\n  {body}\n}}\n"


class _Text:
    """Lines of a function's body while it is written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.arguments: list[tuple[str, str]] = []

    def op(self, result: str, name: str, operands: list[tuple[str, str]], results: str, attributes: str = "") -> None:
        values, kinds = ", ".join(v for v, _ in operands), ", ".join(k for _, k in operands)
        self.lines.append(f'{result} = "{name}"({values}) {attributes}: ({kinds}) -> {results}')

    def onnx(self, result: str, sample: Sample, results: str) -> None:
        """An ONNX operator; operands given as lists are attributes."""
        known = {f"{KNOWN}{index}": arg for index, arg in enumerate(sample.args) if isinstance(arg, list)}
        operands = [self.value(None if isinstance(arg, list) else arg) for arg in sample.args]
        given = {**sample.attributes, **known}
        attributes = ", ".join(f"torch.onnx.{name} = {_attribute(value)}" for name, value in given.items())
        self.op(
            result, "torch.operator", operands, results, f'{{name = "{sample.op}"{", " * bool(given)}{attributes}}} '
        )

    def value(self, arg: Any) -> tuple[str, str]:
        """Name and type of an argument, its definition appended."""
        if isinstance(arg, TensorType):
            self.arguments.append((f"%x{len(self.arguments)}", tensor(arg)))
            return self.arguments[-1]
        name = f"%c{len(self.lines)}"
        if isinstance(arg, list):
            return self._list(arg)
        if isinstance(arg, Number):
            kind, number = tensor(TensorType((), arg.dtype)), _number(arg)
            self.lines.append(f"{name} = torch.vtensor.literal({number}) : {kind}")
            return name, kind
        spelled, kind = _constant(arg)
        self.lines.append(f"{name} = torch.constant.{spelled}")
        return name, kind

    def _list(self, items: list[Any]) -> tuple[str, str]:
        values = [self.value(item) for item in items]
        name = f"%c{len(self.lines)}"
        kind = "!torch.list<vtensor>" if isinstance(items[0], TensorType) else "!torch.list<int>"
        self.op(name, "torch.prim.ListConstruct", values, kind)
        return name, kind


def _attribute(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_attribute, value))}]"
    if isinstance(value, float):
        return f"{value:e} : f32"
    return f'"{value}"' if isinstance(value, str) else f"{value} : si64"


def _number(number: Number) -> str:
    dtype: DType = number.dtype
    return f"dense<{float(number.value) if dtype.is_float else int(number.value)}> : tensor<{dtype.torch}>"


def _constant(arg: Any) -> tuple[str, str]:
    if arg is None:
        return "none", "!torch.none"
    if isinstance(arg, bool):
        return f"bool {str(arg).lower()}", "!torch.bool"
    if isinstance(arg, int):
        return f"int {arg}", "!torch.int"
    if isinstance(arg, float):
        return ("float 0x7FF0000000000000" if arg == float("inf") else f"float {arg:e}"), "!torch.float"
    return f'str "{arg}"', "!torch.str"
