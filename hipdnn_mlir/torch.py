"""Programs as PyTorch modules, and the backend `hipdnn` of `torch.compile`. Needs torch.

import hipdnn_mlir.torch

fast = hipdnn_mlir.torch.CompiledModule(hipdnn_mlir.compile(module, (x,)))
y = fast(x)

fast = torch.compile(module, backend="hipdnn")
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx
from torch._dynamo import list_backends, register_backend

from hipdnn_mlir_runtime.errors import HipdnnMlirError, ModelError, meant
from hipdnn_mlir_runtime.precision import find_precision
from hipdnn_mlir_runtime.torch import CompiledModule

from .compiler.compile import compile as compile_model
from .frontend.pytorch.constants import Constants
from .frontend.pytorch.subgraph import Subgraph
from .targets.table import find_target

__all__ = ["MAX_PROGRAMS", "CompiledModule", "backend"]

logger = logging.getLogger(__name__)
MAX_PROGRAMS = 8
"""Programs of one subgraph, for arguments of different sizes, before the rest runs eagerly."""


def backend(
    graph: fx.GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """The backend `hipdnn` of `torch.compile`: a subgraph becomes a program when it is first called.

    Parameters and buffers become constants of the program; it is compiled again once they have changed. Sizes that Dynamo takes for dynamic
    stay dynamic in the program where one program serves all of them, else there is one for each size. What cannot be compiled runs
    eagerly, with one warning that says why, and so does what needs gradients.

    Args:
        graph: a subgraph, from Dynamo.
        example_inputs: its arguments, as fake tensors.
        options: of `torch.compile`: `target` and `precision`, as for `hipdnn_mlir.compile`.

    Raises:
        ModelError: there is no such option, target or precision.
    """
    del example_inputs
    given = dict(options or {})
    _check(given)
    return _Runner(Subgraph(graph), given)


def _check(options: Mapping[str, Any]) -> None:
    """Refuse options of `torch.compile`: what is wrong with them is wrong of every subgraph, and no reason to run eagerly."""
    checks = {"precision": find_precision, "target": find_target}
    for name, value in options.items():
        if name not in checks:
            expected, hint = " or ".join(map(repr, checks)), meant(name, checks) or None
            raise ModelError(f"unknown option {name!r}", where="torch.compile", expected=expected, hint=hint)
        checks[name](value)


@dataclass
class _Instance:
    """The programs for some constants, by sizes; None where PyTorch runs the subgraph."""

    constants: Constants
    programs: dict[Any, CompiledModule | None] = field(default_factory=dict)


class _Runner:
    """Calls a subgraph of `torch.compile`: the programs that it has become, or itself.

    Not thread-safe while it compiles, as Dynamo itself.
    """

    def __init__(self, subgraph: Subgraph, options: dict[str, Any]) -> None:
        self._subgraph = subgraph
        self._options = options
        self._instances: dict[tuple[int, ...], _Instance] = {}
        self._is_dynamic = subgraph.is_dynamic
        self._has_warned = False

    def __call__(self, *args: Any) -> Any:
        """Run once: as a program where there is one."""
        if torch.is_grad_enabled() and any(isinstance(arg, Tensor) and arg.requires_grad for arg in args):
            return self._eagerly(args, "gradients are asked for: call it under torch.no_grad()")
        programs = self._instance(args).programs
        key = self._subgraph.key(args, is_dynamic=self._is_dynamic)
        if key not in programs:
            if len(programs) >= MAX_PROGRAMS:
                return self._eagerly(args, f"it has {MAX_PROGRAMS} programs for other sizes")
            programs[key] = self._compiled(args)
        program = programs[key]
        return self._subgraph.graph(*args) if program is None else program(*self._subgraph.tensors(args))

    def _instance(self, args: Sequence[Any]) -> _Instance:
        """The programs for these constants: instances of a module share its subgraphs."""
        tensors = self._subgraph.constants(args)
        which = tuple(map(id, tensors))
        found = self._instances.get(which)
        if found is None or not found.constants.are(tensors):
            known = Constants(tensors, self._subgraph.uncounted, lambda: self._instances.pop(which, None))
            found = self._instances[which] = _Instance(known)
        return found

    def _compiled(self, args: Sequence[Any]) -> CompiledModule | None:
        tensors = tuple(self._subgraph.tensors(args))
        if self._is_dynamic:
            try:
                module = self._subgraph.frozen(args, is_dynamic=True)
                shapes = {"tensors": self._subgraph.dynamic_shapes()}
                return CompiledModule(compile_model(module, tensors, dynamic_shapes=shapes, **self._options))
            except HipdnnMlirError as error:
                logger.info("a program for each size: %s", error)
                self._is_dynamic = False
        try:
            return CompiledModule(
                compile_model(self._subgraph.frozen(args, is_dynamic=False), tensors, **self._options)
            )
        except HipdnnMlirError as error:
            self._warn(str(error))
            return None

    def _eagerly(self, args: Sequence[Any], reason: str) -> Any:
        self._warn(reason)
        return self._subgraph.graph(*args)

    def _warn(self, reason: str) -> None:
        """Say once why PyTorch runs the subgraph."""
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(f"torch.compile: a subgraph runs without hipDNN: {reason}", stacklevel=4)


if "hipdnn" not in list_backends():  # the package's entry point says it too, where it is installed
    register_backend(backend, name="hipdnn")
