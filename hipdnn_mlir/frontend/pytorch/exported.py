"""From a module to an exported program, and what its signature says: names, constants, how results are nested."""

import contextlib
import inspect
import io
import sys
import sysconfig
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind, TensorArgument
from torch.utils import _pytree as pytree

from hipdnn_mlir_runtime.errors import ModelError, Reject, UnsupportedError
from hipdnn_mlir_runtime.pytorch import without_logs
from hipdnn_mlir_runtime.torch import Calling, Fixed

from .decompositions import decomposed, row_name

Examples = tuple[Any, ...] | list[Any] | Mapping[str, Any]
"""Positional arguments, or keyword arguments."""
_TRAINING = {
    torch.ops.aten.dropout.default: 2,
    torch.ops.aten.feature_dropout.default: 2,
    torch.ops.aten.alpha_dropout.default: 2,
    torch.ops.aten.batch_norm.default: 5,
}
"""Op -> which of its arguments says that it is one of training."""


@dataclass(frozen=True)
class Exported:
    """A module as the compiler reads it.

    Attributes:
        graph: its ops, decomposed, with symbolic sizes; placeholders first.
        inputs: input name -> its placeholder.
        dims: input name -> dims; an open one is the name of its size, or an expression of such.
        constants: placeholder -> parameter, buffer or constant.
        buffers: the placeholders among them that are no parameters.
        ranges: PyTorch's symbol -> least and greatest size; None where there is no greatest.
        outputs: output name -> what the graph returns for it.
        calling: how arguments and results are nested.
        name: the module's class.
    """

    graph: fx.GraphModule
    inputs: dict[str, fx.Node]
    dims: dict[str, tuple[int | str, ...]]
    constants: dict[fx.Node, Tensor]
    buffers: list[fx.Node]
    ranges: dict[Any, tuple[int, int | None]]
    outputs: dict[str, fx.Node]
    calling: Calling
    name: str


def read_module(
    model: torch.nn.Module | ExportedProgram, examples: Examples | None, dynamic_shapes: Any, where: str
) -> Exported:
    """Export a module, or take an exported program, and decompose it.

    Args:
        model: the module, or a program that `torch.export.export` returned.
        examples: arguments of the module; their values do not matter where the module's control flow does not depend on them.
        dynamic_shapes: as for `torch.export.export`.
        where: the module's name, for messages.

    Raises:
        ModelError: arguments that do not fit, control flow that depends on values, a module in training mode.
        UnsupportedError: a module that changes its own buffers, or inputs that are no tensors.
    """
    names: dict[tuple[str, int], str] = {}
    if isinstance(examples, Tensor):
        raise ModelError(
            "example inputs are a tensor", where=where, expected="a tuple of arguments, or a dict", hint="(x,)"
        )
    if isinstance(model, ExportedProgram):
        if examples is not None or dynamic_shapes is not None:
            raise ModelError(
                "an exported program has inputs of its own",
                where=where,
                hint="leave example_inputs and dynamic_shapes out",
            )
        program = model
    else:
        program, names = _export(model, examples, dynamic_shapes, where)
    _refuse_training(program, where)
    with torch.no_grad():
        program = decomposed(program)
    return _read(program, names, where)


def _export(
    model: torch.nn.Module, examples: Examples | None, dynamic_shapes: Any, where: str
) -> tuple[ExportedProgram, dict[tuple[str, int], str]]:
    if examples is None:
        hint = "hipdnn_mlir.compile(module, (x,)) or hipdnn_mlir.compile(module, {'x': x})"
        raise ModelError("a module is compiled with example inputs", where=where, hint=hint)
    args, kwargs = ((), dict(examples)) if isinstance(examples, Mapping) else (tuple(examples), {})
    printed, graph = io.StringIO(), ""
    try:
        with torch.no_grad(), without_logs(), contextlib.redirect_stderr(printed):
            program = torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
    except Exception as error:  # it runs the user's code: whatever that raises is the reason
        graph = getattr(error, "partial_fx_graph", "")  # PyTorch 2.13 prints it
        raise ModelError(
            f"torch.export cannot export it: {_told(error)}",
            where=where,
            hint=_fixes(error)
            or "torch.export.export(module, args, kwargs, dynamic_shapes=...) has to work; its error is the cause of this one",
        ) from error
    finally:
        sys.stderr.write(printed.getvalue().replace(f"{graph}\n", "") if graph else printed.getvalue())
    return program, _dim_names(model, args, kwargs, dynamic_shapes, program)


def _told(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line.rstrip(".") for index, line in enumerate(lines) if index == 0 or line.startswith("- ")]
    return " ".join([f"{type(error).__name__}:", *told, *_place(error)])


def _place(error: Exception) -> list[str]:
    """Where in the user's code it was raised, `at model.py:12`; nothing where that is PyTorch's alone."""
    others = ("<", str(Path(torch.__file__).parent), str(Path(__file__).parents[2]), sysconfig.get_path("stdlib"))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(others)]
    return [f"at {frames[-1].filename}:{frames[-1].lineno}"] if frames else []


def _fixes(error: Exception) -> str:
    """What PyTorch suggests."""
    _, _, fixes = str(error).partition("Suggested fixes:")
    lines = [line.strip() for line in fixes.splitlines() if "=" in line]
    return f"PyTorch suggests {', '.join(lines)}" if lines else ""


def _dim_names(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, program: ExportedProgram
) -> dict[tuple[str, int], str]:
    """Input and axis -> the name of the `torch.export.Dim` that the user gave."""
    if not dynamic_shapes:
        return {}
    bound = inspect.signature(model.forward).bind(*args, **kwargs).arguments
    given = dynamic_shapes if isinstance(dynamic_shapes, Mapping) else dict(zip(bound, dynamic_shapes, strict=False))
    flat = [spec for name, value in bound.items() for spec in _flat_specs(given.get(name), value)]
    inputs = program.graph_signature.user_inputs
    return {
        (str(name), axis): dim.__name__
        for name, spec in zip(inputs, flat, strict=False)
        for axis, dim in _axes(spec)
        if hasattr(dim, "__name__")
    }


def _flat_specs(spec: Any, value: Any) -> list[Any]:
    """The shape specification of each leaf of an argument."""
    leaves = pytree.tree_leaves(value)
    if spec is None:
        return [None] * len(leaves)
    if isinstance(value, Mapping):
        return [s for key, item in value.items() for s in _flat_specs(spec.get(key), item)]
    if isinstance(value, (list, tuple)):
        return [s for item, own in zip(value, spec, strict=False) for s in _flat_specs(own, item)]
    return [spec]


def _axes(spec: Any) -> list[tuple[int, Any]]:
    if isinstance(spec, Mapping):
        return list(spec.items())
    return list(enumerate(spec)) if isinstance(spec, (list, tuple)) else []


def _refuse_training(program: ExportedProgram, where: str) -> None:
    for node in program.graph.nodes:
        position = _TRAINING.get(node.target) if node.op == "call_function" else None
        if position is not None and len(node.args) > position and node.args[position] is True:
            raise ModelError(
                f"the module is in training mode: {node.target} in {label(node)!r}",
                where=where,
                hint="call its eval() first",
            )


def _read(program: ExportedProgram, names: Mapping[tuple[str, int], str], where: str) -> Exported:
    signature = program.graph_signature
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    constants: dict[fx.Node, Tensor] = {}
    inputs: dict[str, fx.Node] = {}
    flat_inputs: list[str | None] = []
    buffers: list[fx.Node] = []
    for spec in signature.input_specs:
        node = placeholders[spec.arg.name]
        if spec.kind is not InputKind.USER_INPUT:
            constants[node] = _constant(program, spec)
            if spec.kind is not InputKind.PARAMETER:
                buffers.append(node)
        elif isinstance(spec.arg, TensorArgument):
            inputs[node.name] = node
            flat_inputs.append(node.name)
        else:
            flat_inputs.append(None)
            if node.users and not isinstance(spec.arg, ConstantArgument):
                reject = Reject(node.name, "input", "an argument is no tensor, and differs between calls", node.name)
                raise UnsupportedError([reject])
    kinds = {spec.kind for spec in signature.output_specs}
    if not kinds <= {OutputKind.USER_OUTPUT}:
        changed = [
            f"{spec.target or spec.arg.name}"
            for spec in signature.output_specs
            if spec.kind is not OutputKind.USER_OUTPUT
        ]
        raise UnsupportedError([Reject(name, "mutation", "the module writes to it", name) for name in changed])
    out_spec = program.call_spec.out_spec
    outputs, flat_outputs = _outputs(program, out_spec)
    calling = Calling(program.call_spec.in_spec, out_spec, flat_inputs, flat_outputs)
    return Exported(
        program.graph_module,
        inputs,
        _dims(inputs, names),
        constants,
        buffers,
        {symbol: _bounds(bounds) for symbol, bounds in program.range_constraints.items()},
        outputs,
        calling,
        where,
    )


def _bounds(bounds: Any) -> tuple[int, int | None]:
    """Least and greatest size; numbers beyond those of an int are no bounds."""
    low, high = bounds.lower, bounds.upper
    return int(low) if low.is_Integer else 0, int(high) if high.is_Integer and high < sys.maxsize - 1 else None


def _constant(program: ExportedProgram, spec: InputSpec) -> Tensor:
    target = str(spec.target)
    found = program.state_dict.get(target, program.constants.get(target))
    assert isinstance(found, Tensor), f"{target} is no tensor"
    return found.detach()


def _outputs(program: ExportedProgram, out_spec: Any) -> tuple[dict[str, fx.Node], list[str | Fixed]]:
    """Output name -> node, and for each flat result what it is."""
    results = next(iter(reversed(program.graph.nodes))).args[0]
    leaves, _ = pytree.tree_flatten_with_path(pytree.tree_unflatten(list(range(len(results))), out_spec))
    names = {leaf: path for path, leaf in leaves if isinstance(leaf, int)}
    outputs: dict[str, fx.Node] = {}
    flat: list[str | Fixed] = []
    for index, node in enumerate(results):
        if not isinstance(node, fx.Node):
            flat.append(Fixed(node))
            continue
        if not isinstance(node.meta.get("val"), Tensor):
            raise UnsupportedError(
                [Reject("output", "size", "a result is a number that depends on sizes", label(node))]
            )
        name = _output_name(names.get(index, ()), index)
        flat.append(name)
        outputs[name] = node
    return outputs, flat


def _output_name(path: Sequence[Any], index: int) -> str:
    """`logits` for a key of a dict or a field, `output_1` for the second of a tuple, `past.0` for what is nested."""
    keys = [str(getattr(part, "key", getattr(part, "name", getattr(part, "idx", part)))) for part in path]
    if not keys or keys[0].isdecimal():
        return ".".join([f"output_{keys[0] if keys else index}", *keys[1:]])
    return ".".join(keys)


def _dims(inputs: Mapping[str, fx.Node], names: Mapping[tuple[str, int], str]) -> dict[str, tuple[int | str, ...]]:
    """The dims of the inputs, with the user's names for symbols, or `input.axis`."""
    shapes = {name: tuple(node.meta["val"].shape) for name, node in inputs.items()}
    symbols: dict[str, str] = {}
    for name, shape in shapes.items():
        for axis, size in enumerate(shape):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                symbol = str(size.node.expr)
                symbols[symbol] = names.get((name, axis)) or symbols.get(symbol) or f"{name}.{axis}"
    return {name: tuple(_written(size, symbols) for size in shape) for name, shape in shapes.items()}


def _written(size: int | torch.SymInt, symbols: Mapping[str, str]) -> int | str:
    """A size as a number, a name, or an expression of names."""
    if isinstance(size, int):
        return size
    expression = size.node.expr
    if expression.is_Integer:  # `Dim.AUTO` of a size that the module fixes
        return int(expression)
    if expression.is_Symbol:
        return symbols[str(expression)]
    text = str(expression)
    for symbol in sorted(symbols, key=len, reverse=True):
        text = text.replace(symbol, symbols[symbol])
    return text


def label(node: fx.Node) -> str:
    """A node's name behind the path of the module that it belongs to: `encoder.layers.0.linear1/linear_3`."""
    stack = node.meta.get("nn_module_stack") or {}
    path = str(next(reversed(stack.values()))[0]) if stack else ""
    path = path.removeprefix("L['self']").lstrip(".")
    return f"{path}/{node.name}" if path and not path.startswith("_empty") else node.name


def sized_by_values(exported: Exported) -> list[Reject]:
    """The ops whose results have sizes, or are numbers, that only the values of a run tell: programs have none such."""
    reason = "a size or number that it gives depends on values"
    found = [node for node in exported.graph.graph.nodes if node.meta.get("unbacked_bindings")]
    names = [row_name(node.target) if isinstance(node.target, OpOverload) else str(node.target) for node in found]
    return [Reject(name, "values", reason, label(node)) for name, node in zip(names, found, strict=True)]


def source_line(node: fx.Node) -> str:
    """Where in the user's code a node comes from: `model.py:12`; empty where that is not known."""
    lines = [
        line.strip() for line in (node.meta.get("stack_trace") or "").splitlines() if line.strip().startswith("File ")
    ]
    if not lines:
        return ""
    parts = lines[-1].removeprefix('File "').split('", line ')
    return f"{parts[0]}:{parts[1].split(',')[0]}" if len(parts) == 2 else ""
