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
from typing import Any, Unpack, cast

import torch
from torch import Tensor, fx, nn
from torch._dynamo import list_backends, register_backend
from torch.export._tree_utils import reorder_kwargs
from torch.utils import _pytree as pytree

from hipdnn_mlir_runtime.errors import HipdnnMlirError, ModelError
from hipdnn_mlir_runtime.expressions import REFERENCE, Expressions, Ref
from hipdnn_mlir_runtime.pytorch import from_numpy, to_numpy
from hipdnn_mlir_runtime.session.options import SessionOptions

from .compiler.compile import compile as compile_model
from .compiler.program import Program
from .frontend.pytorch.exported import Calling, Fixed
from .frontend.pytorch.subgraph import Subgraph
from .frontend.pytorch.tensors import TORCH_DTYPES

logger = logging.getLogger(__name__)
ALIGNMENT = 16
"""Bytes: what hipDNN asks of a tensor's pointer."""
MAX_PROGRAMS = 8
"""Programs of one subgraph, for arguments of different sizes, before the rest runs eagerly."""


class CompiledModule(nn.Module):
    """A program that is called as the module that it was compiled from: tensors in, tensors out, on the same device.

    Tensors are read and written where they lie. One that is not dense, or not aligned to 16 bytes, is copied first. On a GPU a call is
    queued on PyTorch's current stream. There are no gradients.

    Args:
        program: from `hipdnn_mlir.compile`. One of an ONNX model takes tensors in the order of its inputs, and returns a tuple.
        options: as for `hipdnn_mlir.load`.

    Raises:
        HipdnnMlirError: as for `hipdnn_mlir.load`.
    """

    def __init__(self, program: Program, **options: Unpack[SessionOptions]) -> None:
        super().__init__()
        self.session = program.session(**options)
        model = program.model
        self._inputs, self._outputs = model.inputs, model.outputs
        self._table = Expressions(tuple(model.symbols), [_entry(entry) for entry in model.expressions])
        self._calling: Calling = program.calling or _flat_calling(program)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run once, with the arguments of the module.

        Raises:
            ModelError: arguments that are nested otherwise than the example inputs, or of other dtypes or dims.
        """
        feeds = self._feeds(args, kwargs)
        devices = {tensor.device for tensor in feeds.values()}
        if len(devices) > 1:
            raise ModelError("the arguments are on several devices", got=", ".join(sorted(map(str, devices))))
        device = devices.pop() if devices else torch.device("cpu")
        out = self._run_on_device(feeds, device) if device.type != "cpu" else self._run(feeds)
        leaves = [known.value if isinstance(known, Fixed) else out[known] for known in self._calling.outputs]
        return pytree.tree_unflatten(leaves, self._calling.out_spec)

    def _run(self, feeds: Mapping[str, Tensor]) -> dict[str, Tensor]:
        if self.session.buckets:  # what is padded and cut is NumPy's
            arrays = {name: to_numpy(tensor) for name, tensor in feeds.items()}
            names = [port.name for port in self._outputs]
            return dict(zip(names, map(from_numpy, self.session.run(names, arrays)), strict=True))
        out = self._empty(feeds, torch.device("cpu"))
        self.session.run(None, feeds, out=cast("Any", out))  # what has __dlpack__ is an array to it
        return out

    def _run_on_device(self, feeds: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
        out = self._empty(feeds, device)
        self.session.enqueue(feeds, out, stream=torch.cuda.current_stream(device).cuda_stream)
        return out

    def _feeds(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Tensor]:
        calling = self._calling
        if kwargs:
            try:
                kwargs = reorder_kwargs(kwargs, calling.in_spec)
            except ValueError as error:
                raise ModelError(f"wrong arguments: {error}", expected="those of the example inputs") from error
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != calling.in_spec:
            raise ModelError(
                "arguments nested as the example inputs were not", expected=str(calling.in_spec), got=str(spec)
            )
        return {
            name: _readable(leaf, name) for name, leaf in zip(calling.inputs, leaves, strict=True) if name is not None
        }

    def _empty(self, feeds: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
        """Tensors for the outputs."""
        known: dict[int | Ref, int] = {
            dim: size
            for port in self._inputs
            for size, dim in zip(feeds[port.name].shape, port.dims, strict=False)
            if isinstance(dim, Ref)
        }
        symbols = [known.get(self._table.symbol(name), 0) for name in self._table.symbols]
        return {
            port.name: torch.empty(
                [self._table.value(dim, symbols) for dim in port.dims], dtype=TORCH_DTYPES[port.dtype], device=device
            )
            for port in self._outputs
        }


def _entry(entry: Sequence[Any]) -> tuple[Any, ...]:
    """An entry of a program's table of expressions."""
    return tuple(Ref(part[REFERENCE]) if isinstance(part, dict) else part for part in entry)


def _flat_calling(program: Program) -> Calling:
    """Tensors in the order of the inputs; a tuple of the outputs."""
    inputs, outputs = ([port.name for port in ports] for ports in (program.model.inputs, program.model.outputs))
    _, in_spec = pytree.tree_flatten((tuple(inputs), {}))
    _, out_spec = pytree.tree_flatten(tuple(outputs))
    return Calling(in_spec, out_spec, [*inputs], [*outputs])


def _readable(value: Any, name: str) -> Tensor:
    """A tensor that the runtime reads where it lies."""
    if not isinstance(value, Tensor):
        raise ModelError("no tensor", where=f"'{name}'", expected="a torch.Tensor", got=type(value).__name__)
    dense = value.detach().contiguous()
    return dense if dense.data_ptr() % ALIGNMENT == 0 else dense.clone()


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
    """
    del example_inputs
    return _Runner(Subgraph(graph), dict(options or {}))


class _Runner:
    """Calls a subgraph of `torch.compile`: the programs that it has become, or itself.

    Not thread-safe while it compiles, as Dynamo itself.
    """

    def __init__(self, subgraph: Subgraph, options: dict[str, Any]) -> None:
        self._subgraph = subgraph
        self._options = options
        self._known: list[Any] = []
        self._programs: dict[Any, CompiledModule | None] = {}
        self._is_dynamic = subgraph.is_dynamic
        self._has_warned = False

    def __call__(self, *args: Any) -> Any:
        """Run once: as a program where there is one."""
        if torch.is_grad_enabled() and any(isinstance(arg, Tensor) and arg.requires_grad for arg in args):
            return self._eagerly(args, "gradients are asked for: call it under torch.no_grad()")
        known = self._subgraph.state(args)
        if known != self._known:
            self._programs.clear()
            self._known = known
        key = self._subgraph.key(args, is_dynamic=self._is_dynamic)
        if key not in self._programs:
            if len(self._programs) >= MAX_PROGRAMS:
                return self._eagerly(args, f"it has {MAX_PROGRAMS} programs for other sizes")
            self._programs[key] = self._compiled(args)
        program = self._programs[key]
        return self._subgraph.graph(*args) if program is None else program(*self._subgraph.tensors(args))

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
