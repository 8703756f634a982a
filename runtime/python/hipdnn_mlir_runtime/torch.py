"""Programs as PyTorch modules: tensors in, tensors out, on the same device. Needs torch.

import hipdnn_mlir_runtime.torch

fast = hipdnn_mlir_runtime.torch.CompiledModule("model.hipdnn")
y = fast(x)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Unpack, cast

import torch
from torch import Tensor, nn
from torch.export._tree_utils import reorder_kwargs
from torch.utils import _pytree as pytree

from .dtypes import ALL
from .errors import ModelError
from .pytorch import from_numpy, to_numpy
from .session.options import SessionOptions
from .session.session import Session
from .session.source import Source

TORCH_DTYPES = {d.name: getattr(torch, d.numpy_name) for d in ALL}
"""Element type as programs spell it -> PyTorch's."""
_ALIGNMENT = 16
"""Bytes: what hipDNN asks of a tensor's pointer."""


@dataclass(frozen=True)
class Calling:
    """How the arguments and results of a module are nested.

    Attributes:
        in_spec: Of (args, kwargs), as `torch.utils._pytree` has it.
        out_spec: Of the results.
        inputs: For each flat argument the input that it is; None for one that the program does not have.
        outputs: For each flat result the output that it is, or a value that it always has.
    """

    in_spec: Any
    out_spec: Any
    inputs: list[str | None]
    outputs: list[str | Fixed]


@dataclass(frozen=True)
class Fixed:
    """A result that is the same for all inputs: a number, None, a string."""

    value: Any = None


class CompiledModule(nn.Module):
    """A program that is called as the module that it was compiled from: tensors in, tensors out, on the same device.

    Tensors are read and written where they lie. One that is not dense, or not aligned to 16 bytes, is copied first. On a GPU a call is
    queued on PyTorch's current stream. There are no gradients.

    Args:
        program: From `hipdnn_mlir.compile`, called as its module; or the path of a program file, which takes tensors in the order of its
            inputs and returns a tuple, as programs of ONNX models do.
        options: As for `hipdnn_mlir.load`.

    Raises:
        HipdnnMlirError: As for `hipdnn_mlir.load`.
    """

    def __init__(self, program: Source, **options: Unpack[SessionOptions]) -> None:
        super().__init__()
        self.session = Session(program, **options)
        self._calling: Calling = getattr(program, "calling", None) or _flat_calling(self.session)

    def extra_repr(self) -> str:
        """What `repr` shows: the session, with inputs and outputs."""
        return repr(self.session)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run once, with the arguments of the module.

        Raises:
            ModelError: Arguments that are nested otherwise than the example inputs, or of other dtypes or dims.
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
            names = [port.name for port in self.session.outputs]
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
            with suppress(ValueError):  # other names, which the comparison below tells
                kwargs = reorder_kwargs(kwargs, calling.in_spec)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != calling.in_spec:
            expected = _written(calling.in_spec, [name or "..." for name in calling.inputs])
            got = _written(spec, [type(leaf).__name__ for leaf in leaves])
            raise ModelError("arguments nested as the example inputs were not", expected=expected, got=got)
        return {
            name: _readable(leaf, name) for name, leaf in zip(calling.inputs, leaves, strict=True) if name is not None
        }

    def _empty(self, feeds: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
        """Tensors for the outputs."""
        shapes = self.session.output_shapes({name: tensor.shape for name, tensor in feeds.items()})
        return {
            port.name: torch.empty(shapes[port.name], dtype=TORCH_DTYPES[port.dtype], device=device)
            for port in self.session.outputs
        }


def _flat_calling(session: Session) -> Calling:
    """Tensors in the order of the inputs; a tuple of the outputs."""
    inputs, outputs = ([port.name for port in ports] for ports in (session.inputs, session.outputs))
    _, in_spec = pytree.tree_flatten((tuple(inputs), {}))
    _, out_spec = pytree.tree_flatten(tuple(outputs))
    return Calling(in_spec, out_spec, [*inputs], [*outputs])


class _Word(str):
    """A text that is written without quotes inside of lists and dicts."""

    __slots__ = ()
    __repr__ = str.__str__


def _written(in_spec: Any, leaves: Iterable[str]) -> str:
    """Arguments as in a call, `(x, more={'a': y})`, with a word for each leaf."""
    args, kwargs = pytree.tree_unflatten(map(_Word, leaves), in_spec)
    return f"({', '.join([*map(repr, args), *(f'{name}={value!r}' for name, value in kwargs.items())])})"


def _readable(value: Any, name: str) -> Tensor:
    """A tensor that the runtime reads where it lies."""
    if not isinstance(value, Tensor):
        raise ModelError("no tensor", where=f"'{name}'", expected="a torch.Tensor", got=type(value).__name__)
    dense = value.detach().contiguous()
    return dense if dense.data_ptr() % _ALIGNMENT == 0 else dense.clone()
