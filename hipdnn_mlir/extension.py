"""What packages outside add to the compiler: passes, fusion patterns, operators of their own. docs/extending.md has a worked example.

An extension is a module that calls the functions below when it is imported. It is named by `--extension`, or by the environment variable
HIPDNN_MLIR_EXTENSIONS, a list with commas, which child processes and ONNX Runtime's provider read too.
"""

import functools
import importlib
import json
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import onnx
from torch_mlir import ir

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import AttributeType as T
from hipdnn_mlir_runtime.abi import DataType, Descriptor
from hipdnn_mlir_runtime.errors import HipdnnMlirError, ModelError

from .frontend.decompositions.call import Call
from .frontend.decompositions.registry import Decomposition
from .frontend.decompositions.table import DECOMPOSITIONS
from .frontend.own_operators import RESULTS
from .ir.blocks import erase_dead, functions, operations
from .ir.module_pass import PASSES, PassFunction, module_pass
from .ir.patterns import op_classes
from .ir.types import tensor_type
from .ops.emitter import Emitter, Value
from .ops.registry import ONNX, add
from .ops.row import OpRow
from .ops.spec import OpView, Refusal, TensorArg, TensorType
from .passes.pipeline import TORCH_STEPS

__all__ = [
    "VARIABLE",
    "Call",
    "OpView",
    "Refusal",
    "TensorArg",
    "TensorType",
    "custom_op",
    "decomposition",
    "load_extensions",
    "pattern",
    "torch_pass",
]

VARIABLE = "HIPDNN_MLIR_EXTENSIONS"
Op = TypeVar("Op", bound=ir.OpView)
Rewrite = Callable[[Op], Sequence[ir.Value] | None]
P = ParamSpec("P")
R = TypeVar("R")
CustomResults = Callable[[Sequence[TensorType], dict[str, Any]], Sequence[TensorType]]


def torch_pass(name: str, *, after: str) -> Callable[[PassFunction], PassFunction]:
    """Register a pass over the module in the torch dialect and run it in every compilation.

    `hipdnn-opt --extension MODULE --NAME` runs it alone. A model with dynamic dimensions passes by several times, at several sizes,
    and has to be treated alike each time.

    Args:
        name: the pass's name on the command line; not one of this package's.
        after: the step it follows, by the name that `--dump-ir` shows.

    Raises:
        HipdnnMlirError: the name is taken, or there is no such step.
    """
    steps = [step.name for step in TORCH_STEPS[:-1]]
    if name in PASSES:
        raise HipdnnMlirError(f"a pass is called {name!r} already", hint="choose another name")
    if after not in steps:
        raise HipdnnMlirError(f"no step {after!r} in the torch dialect", expected=f"one of {', '.join(steps)}")

    def enter(run: PassFunction) -> PassFunction:
        module_pass(name, after=after)(_named(f"pass {name!r}", run))
        return run

    return enter


def pattern(name: str, *, after: str) -> Callable[[Rewrite[Op]], Rewrite[Op]]:
    """Register a fusion pattern as a pass: the decorated function sees each op of its parameter's class, last one first.

    The parameter is annotated with a class of `torch_mlir.dialects.torch`, `torch.AtenMulTensorOp`, or a union of such. The function
    returns None where the pattern does not match, else the values that take the place of the op's results; ops that it creates go in
    front of the op, with its location. A Refusal, as `hipdnn_mlir.ir.view.argument` raises it, leaves the op as it is. What nothing reads
    any more is erased.

    Args:
        name: as for `torch_pass`.
        after: as for `torch_pass`.

    Raises:
        HipdnnMlirError: as for `torch_pass`, or the parameter is annotated with something else.
    """

    def enter(rewrite: Rewrite[Op]) -> Rewrite[Op]:
        guarded, roots = _named(f"pattern {name!r}", rewrite), _roots(name, rewrite)

        def run(module: ir.Operation) -> None:
            for function in functions(module):
                for op in reversed(operations(function)):
                    if isinstance(op, roots):
                        _replace(op, guarded)
                erase_dead(function)

        run.__doc__ = rewrite.__doc__
        torch_pass(name, after=after)(run)
        return rewrite

    return enter


def _roots(name: str, rewrite: Rewrite[Op]) -> tuple[type[ir.OpView], ...]:
    """The classes of ops that a pattern is for."""
    kinds = _named(f"pattern {name!r}", op_classes)(rewrite)
    if not all(isinstance(kind, type) and issubclass(kind, ir.OpView) for kind in kinds):
        message, hint = (
            f"the parameter of pattern {name!r} is not annotated with a class of ops",
            "op: torch.AtenMulTensorOp",
        )
        raise HipdnnMlirError(message, got=repr(kinds[0]), hint=hint)
    return kinds


def _replace(op: Op, rewrite: Rewrite[Op]) -> None:
    try:
        with ir.InsertionPoint(op), op.location:
            made = rewrite(op)
    except Refusal:
        return
    if made is None:
        return
    if not isinstance(made, Sequence) or len(made) != len(op.results):
        message, hint = "a pattern must return a list of new results", "return one value per result, or None"
        raise HipdnnMlirError(message, where=op.OPERATION_NAME, got=repr(made), hint=hint)
    for result, value in zip(op.results, made, strict=True):
        if result.type != value.type:
            kinds = f"{tensor_type(result.type)} by {tensor_type(value.type)}"
            raise HipdnnMlirError(
                f"a pattern changes the type of a result: {kinds}", where=op.OPERATION_NAME, hint="keep dims and dtype"
            )
        result.replace_all_uses_with(value)


def decomposition(domain: str, operator: str) -> Callable[[Decomposition], Decomposition]:
    """Register how an ONNX operator is written by others; the decorated function writes nodes on a Call and returns its results.

    Args:
        domain: the node's domain.
        operator: the node's type.
    """

    def enter(write: Decomposition) -> Decomposition:
        DECOMPOSITIONS[domain, operator] = _named(f"decomposition of {domain}::{operator}", write)
        return write

    return enter


def custom_op(domain: str, operator: str, *, id: str) -> Callable[[CustomResults], CustomResults]:  # noqa: A002 - hipDNN's word
    """Register an ONNX operator that becomes hipDNN's custom operation.

    The library that runs the program has to know the ID: by a plugin of AMD's, or on the host port by `hipdnnHostRegisterCustomOp_ext`. The
    node's attributes go along as JSON text. The decorated function takes the operands' types and the attributes, and returns the results'
    types.

    Args:
        domain: the node's domain.
        operator: the node's type, none of ONNX's own.
        id: hipDNN's ID of the custom operation.

    Raises:
        HipdnnMlirError: the operator is one of ONNX's, or registered already.
    """
    _check_name(domain, operator)

    def emit(e: Emitter, op: OpView) -> list[Value]:
        """Operands and results in the order of the node's."""
        _need_all(op.args)
        operands = [e.value(arg) for arg in op.args if isinstance(arg, TensorArg)]
        attributes = json.dumps(op.attributes, sort_keys=True, separators=(",", ":")).encode()
        return e.node(
            Descriptor.OPERATION_CUSTOM_OP_DESCRIPTOR_EXT,
            {(A.OPERATION_CUSTOM_OP_INPUTS_EXT, index): value for index, value in enumerate(operands)},
            {
                (A.OPERATION_CUSTOM_OP_OUTPUTS_EXT, index): (kind.static_dims() or (1,), kind.dtype)
                for index, kind in enumerate(op.results)
            },
            [
                (A.OPERATION_CUSTOM_OP_ID_EXT, T.CHAR, id),
                (A.OPERATION_CUSTOM_OP_DATA_EXT, T.CHAR, {"hex": attributes.hex()}),
                (A.CUSTOM_OP_COMP_TYPE_EXT, T.DATA_TYPE, [int(DataType.FLOAT)]),
            ],
        )

    def enter(results: CustomResults) -> CustomResults:
        guarded = _named(f"custom operation {domain}::{operator}", results)

        def checked(operands: Sequence[TensorType | None], attributes: Mapping[str, Any]) -> Sequence[TensorType]:
            _need_all(operands)
            return guarded([kind for kind in operands if kind is not None], dict(attributes))

        RESULTS[domain, operator] = checked
        add(OpRow(f"{ONNX}{operator}", f"custom operation {id}", emit=emit, onnx=(f"{domain}.{operator}",)))
        return results

    return enter


def _named(what: str, function: Callable[P, R]) -> Callable[P, R]:
    """A function of an extension whose failures are the extension's, with file and line, and no defect of the compiler."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (HipdnnMlirError, Refusal):
            raise
        except Exception as error:  # the code is not this package's: it may raise anything
            raise _failure(f"an extension's {what} fails", error) from error

    return guarded


def _failure(message: str, error: Exception) -> HipdnnMlirError:
    """An exception of an extension as an error of the user's, with the line that raised it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    where = f"{frames[-1].filename}:{frames[-1].lineno}"
    return HipdnnMlirError(f"{message}: {type(error).__name__}: {error}", where=where, hint="correct the extension")


def _need_all(operands: Sequence[object]) -> None:
    if None in operands:
        raise Refusal("operands", "a custom operation cannot have omitted operands")


def _check_name(domain: str, operator: str) -> None:
    if any(schema.name == operator and not schema.domain for schema in onnx.defs.get_all_schemas()):
        raise HipdnnMlirError(f"{operator!r} is an operator of ONNX", hint="give yours another name")
    if (domain, operator) in RESULTS or (domain, operator) in DECOMPOSITIONS:
        raise HipdnnMlirError(f"operator {domain}::{operator} is registered already")


def load_extensions(names: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> None:
    """Import extensions once, those of the environment and the given ones; child processes then import them too.

    Raises:
        ModelError: there is no such module, or one that it imports.
        HipdnnMlirError: a module fails when it is imported.
    """
    stated = (os.environ if environment is None else environment).get(VARIABLE, "").split(",")
    wanted = list(dict.fromkeys(name.strip() for name in (*stated, *names) if name.strip()))
    for name in wanted:
        try:
            importlib.import_module(name)
        except ImportError as error:
            hint = "install it, or put its folder on PYTHONPATH"
            raise ModelError(f"the extension cannot be imported: {error}", where=name, hint=hint) from error
        except HipdnnMlirError:
            raise
        except Exception as error:  # as above
            raise _failure(f"the extension {name!r} cannot be imported", error) from error
    if wanted:
        os.environ[VARIABLE] = ",".join(wanted)
