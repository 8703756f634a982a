"""Models in PyTorch, for comparison: `.pt2` files, and ONNX files that the package onnx2torch converts."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ModelError
from ..pytorch import first_line, from_numpy, is_exported, load_exported, need_torch, to_numpy
from .arrays import Array

if TYPE_CHECKING:
    from torch import Tensor
    from torch.export import ExportedProgram
    from torch.nn import Module

_OPERATOR = re.compile(r"operation_type='(\w+)', version=(\d+)")
"""Of the message of onnx2torch's NotImplementedError."""


class TorchModel:
    """A model as a PyTorch module, and how it is called with the inputs of a program.

    Args:
        path: A `.pt2` file, or an ONNX file.
        threads: Threads of PyTorch, for the whole process; 0 for all CPUs that the process may use.
        device: Where it runs, as PyTorch names it: `cuda` for a GPU of either vendor. Inputs and results are the host's all the same.

    Raises:
        ModelError: PyTorch or onnx2torch is not installed; the file cannot be loaded or converted; PyTorch has no such device.
    """

    def __init__(self, path: Path, threads: int = 0, device: str = "cpu") -> None:
        need_torch(path)
        import torch

        torch.set_num_threads(threads or len(os.sched_getaffinity(0)))
        self._path = path
        self._device = device
        self._program = load_exported(path) if is_exported(path) else None
        if device != "cpu" and not torch.cuda.is_available():
            hint = "install a PyTorch for this GPU, or bench a program for the CPU (--target host)"
            raise ModelError(f"PyTorch {torch.__version__} has no GPU here", where=str(path), hint=hint)
        self.module: Module = _converted(path).to(device) if self._program is None else _module(self._program, device)

    def arguments(self, feeds: Mapping[str, Array]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return positional and keyword arguments: tensors in the memory of the inputs, on the host.

        Raises:
            ModelError: The module has other inputs.
        """
        tensors = {name: from_numpy(array) for name, array in feeds.items()}
        if self._program is None:
            return tuple(tensors.values()), {}
        return _nested(self._program, tensors, self._path)

    def compiled(self) -> Callable[..., Any]:
        """Return what `torch.compile` makes of the module; it is compiled when it is first called."""
        import torch

        return torch.compile(self.module)

    def bound(self, call: Callable[..., Any], feeds: Mapping[str, Array]) -> Callable[[], Any]:
        """Return a function that calls the module, as it is or compiled; on a GPU, copies of inputs and results are part of each call."""
        import torch

        args, kwargs = self.arguments(feeds)

        def run() -> Any:
            with torch.inference_mode():
                return call(*args, **kwargs)

        def run_on_gpu() -> Any:
            with torch.inference_mode():
                moved, named = _to(self._device, (args, kwargs))
                return _to("cpu", call(*moved, **named))

        return run if self._device == "cpu" else run_on_gpu

    def run(self, call: Callable[[], Any], names: Sequence[str]) -> Sequence[Array]:
        """Return the results of a call, one for each of a program's outputs.

        Args:
            call: From ``bound``.
            names: The outputs.

        Raises:
            ModelError: PyTorch cannot run it; there are more or fewer results than outputs.
        """
        import torch
        from torch.utils import _pytree as pytree

        try:
            leaves = pytree.tree_leaves(call())
        except Exception as error:  # it is the model's own code
            raise ModelError(f"PyTorch cannot run it: {first_line(error)}", where=str(self._path)) from error
        results = [to_numpy(leaf) for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if len(results) != len(names):
            got = f"{len(results)} results"
            raise ModelError("not the model of the program", where=str(self._path), expected=", ".join(names), got=got)
        return results


def reference_runner(
    model: Path, names: Sequence[str], threads: int = 0
) -> Callable[[Mapping[str, Array]], Sequence[Array]]:
    """Return a function that runs a model in PyTorch as it is, from inputs by name to outputs; arguments as of ``TorchModel``."""
    loaded = TorchModel(model, threads)
    return lambda feeds: loaded.run(loaded.bound(loaded.module, feeds), names)


def _nested(
    program: ExportedProgram, tensors: Mapping[str, Tensor], path: Path
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments nested as the module takes them; those that are no tensors as they were exported."""
    from torch.export.graph_signature import InputKind, TensorArgument
    from torch.utils import _pytree as pytree

    given = [spec.arg for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    wanted = [arg.name for arg in given if isinstance(arg, TensorArgument)]
    if {*wanted} != {*tensors}:
        expected = f"inputs {', '.join(tensors)}"
        raise ModelError("not the model of the program", where=str(path), expected=expected, got=", ".join(wanted))
    leaves = [tensors[arg.name] if isinstance(arg, TensorArgument) else getattr(arg, "value", None) for arg in given]
    args, kwargs = pytree.tree_unflatten(leaves, program.call_spec.in_spec)
    return args, kwargs


def _to(device: str, values: Any) -> Any:
    """Nested values with their tensors on a device."""
    from torch import Tensor
    from torch.utils import _pytree as pytree

    return pytree.tree_map_only(Tensor, lambda tensor: tensor.to(device), values)


def _module(program: ExportedProgram, device: str) -> Module:
    from torch.export.passes import move_to_device_pass

    return (program if device == "cpu" else move_to_device_pass(program, device)).module()


def _converted(path: Path) -> Module:
    try:
        import onnx2torch
    except (ImportError, RuntimeError) as error:  # the latter for a torchvision that was built for another PyTorch
        told = f"PyTorch takes ONNX models through onnx2torch, which cannot be imported: {first_line(error)}"
        hint = "pip install onnx2torch, and the torchvision that belongs to your PyTorch"
        raise ModelError(told, where=str(path), hint=hint) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module: Module = onnx2torch.convert(str(path)).eval()
    except Exception as error:  # its exceptions share no base class
        found = _OPERATOR.search(str(error))
        told = f"it does not know {found[1]} of opset {found[2]}" if found else first_line(error)
        hint = "compile the PyTorch module itself: save it with torch.export.save"
        raise ModelError(f"onnx2torch cannot convert it: {told}", where=str(path), hint=hint) from error
    return module
