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
from typing import Any, Unpack

import torch
from torch import Tensor, fx, nn
from torch._dynamo import list_backends, register_backend
from torch.export._tree_utils import reorder_kwargs
from torch.utils import _pytree as pytree

from .compiler.compile import compile as compile_model
from .compiler.program import Program
from .errors import HipdnnMlirError, ModelError
from .frontend.pytorch.exported import Calling, Fixed
from .frontend.pytorch.tensors import TORCH_DTYPES, from_numpy, to_numpy
from .program.expressions import REFERENCE, Expressions, Ref
from .session.options import SessionOptions

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
        self.session.run(None, feeds, out=out)
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
            raise ModelError("arguments nested as the example inputs were not", expected=str(calling.in_spec), got=str(spec))
        return {
            name: _readable(leaf, name)
            for name, leaf in zip(calling.inputs, leaves, strict=True)
            if name is not None
        }

    def _empty(self, feeds: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
        """Tensors for the outputs."""
        symbols = [0] * len(self._table.symbols)
        for port in self._inputs:
            for size, dim in zip(feeds[port.name].shape, port.dims, strict=False):
                if isinstance(dim, Ref) and self._table.entries[dim.index][0] == "symbol":
                    symbols[self._table.entries[dim.index][1]] = size
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

    Parameters and buffers become constants of the program; it is compiled again once they have changed. What cannot be compiled runs
    eagerly, with one warning that says why, and so does what needs gradients.

    Args:
        graph: a subgraph, from Dynamo.
        example_inputs: its arguments, as fake tensors.
        options: of `torch.compile`: `target` and `precision`, as for `hipdnn_mlir.compile`.
    """
    del example_inputs
    return _Subgraph(graph, dict(options or {}))


class _Subgraph:
    """A subgraph of `torch.compile`, with the programs that it has become.

    Not thread-safe while it compiles, as Dynamo itself.
    """

    def __init__(self, graph: fx.GraphModule, options: dict[str, Any]) -> None:
        self._graph = graph
        self._options = options
        self._placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._constant = [_is_constant(node) for node in self._placeholders]
        self._known: list[Any] = []
        self._programs: dict[tuple[Any, ...], CompiledModule | None] = {}
        self._warned = False

    def __call__(self, *args: Any) -> Any:
        """Run once: as a program where there is one."""
        if torch.is_grad_enabled() and any(isinstance(arg, Tensor) and arg.requires_grad for arg in args):
            return self._eagerly(args, "gradients are asked for: call it under torch.no_grad()")
        known = [_state(arg) for arg, is_constant in zip(args, self._constant, strict=True) if is_constant]
        if known != self._known:
            self._programs.clear()
            self._known = known
        key = tuple(_shape(arg) for arg, is_constant in zip(args, self._constant, strict=True) if not is_constant)
        if key not in self._programs:
            if len(self._programs) >= MAX_PROGRAMS:
                return self._eagerly(args, f"it has {MAX_PROGRAMS} programs for other sizes; mark dimensions as dynamic")
            self._programs[key] = self._compiled(args)
        program = self._programs[key]
        if program is None:
            return self._graph(*args)
        return program(*self._tensors(args))

    def _tensors(self, args: Sequence[Any]) -> list[Tensor]:
        """The arguments of the program."""
        return [
            arg for arg, is_constant in zip(args, self._constant, strict=True) if isinstance(arg, Tensor) and not is_constant
        ]

    def _compiled(self, args: Sequence[Any]) -> CompiledModule | None:
        module = _Frozen(self._graph, args, self._constant)
        try:
            return CompiledModule(compile_model(module, tuple(self._tensors(args)), **self._options))
        except HipdnnMlirError as error:
            self._warn(str(error))
            return None

    def _eagerly(self, args: Sequence[Any], reason: str) -> Any:
        self._warn(reason)
        return self._graph(*args)

    def _warn(self, reason: str) -> None:
        """Say once why PyTorch runs the subgraph."""
        if not self._warned:
            self._warned = True
            warnings.warn(f"torch.compile: a subgraph runs without hipDNN: {reason}", stacklevel=4)


class _Frozen(nn.Module):
    """A subgraph with some of its arguments as constants."""

    def __init__(self, graph: fx.GraphModule, args: Sequence[Any], constant: Sequence[bool]) -> None:
        super().__init__()
        self.graph = graph
        self._fixed = [not isinstance(arg, Tensor) for arg in args]
        self._args = [arg if fixed else None for arg, fixed in zip(args, self._fixed, strict=True)]
        self._constant = list(constant)
        for index, (arg, is_constant) in enumerate(zip(args, constant, strict=True)):
            if is_constant:
                self.register_buffer(f"constant_{index}", arg.detach(), persistent=False)

    def forward(self, *tensors: Tensor) -> Any:
        """The subgraph's results."""
        given = iter(tensors)
        args = [
            getattr(self, f"constant_{index}") if is_constant else self._args[index] if self._fixed[index] else next(given)
            for index, is_constant in enumerate(self._constant)
        ]
        return self.graph(*args)


def _is_constant(node: fx.Node) -> bool:
    """Whether Dynamo says that an argument is a parameter or buffer of a module."""
    return "_dynamo_static_input_type" in node.meta.get("tensor_dict", {})


def _state(tensor: Tensor) -> tuple[int, int]:
    """What changes with a tensor's values: which it is, and how often it was written to."""
    return id(tensor), 0 if tensor.is_inference() else tensor._version


def _shape(value: Any) -> Any:
    return (tuple(value.shape), value.dtype) if isinstance(value, Tensor) else value


if "hipdnn" not in list_backends():  # the package's entry point says it too, where it is installed
    register_backend(backend, name="hipdnn")
