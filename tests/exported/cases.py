"""The models by name: how to build one, its inputs and their names, and the dims that are open when exported dynamically."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import torch
from torch import nn
from torch.onnx._internal.exporter._registration import ONNXRegistry

from .attention import Encoder, LayerEncoder, ViT
from .classifiers import CNN, MLP
from .decoder import CausalDecoder, Decoder, Sizes
from .speech import SpeechEncoder
from .unet import UNet

Tensors = tuple[Any, ...]
# Each export reads the 500 functions of onnxscript's library again, which takes longer than the rest of the export of a small model.
ONNXRegistry.from_torchlib = staticmethod(cache(ONNXRegistry.from_torchlib))


@dataclass(frozen=True)
class Case:
    """A model and how to export it.

    Attributes:
        build: makes the module.
        inputs: makes the arguments from sizes of the dynamic dimensions.
        names: of the ONNX inputs, in the order of the arguments' tensors.
        open: name of a dim -> its size in the static export and when the export is traced.
        dims: per argument, axis -> name of the dynamic dimension, nested as the arguments are.
    """

    build: Callable[[], nn.Module]
    inputs: Callable[..., Tensors]
    names: tuple[str, ...]
    open: dict[str, int]
    dims: Tensors = field(default=())


def _tokens(batch: int, s: int) -> torch.Tensor:
    return torch.randint(0, 50, (batch, s))


def _padding(batch: int, s: int) -> torch.Tensor:
    """The last third of every other sequence is padding."""
    ends = torch.tensor([s if row % 2 else s - s // 3 for row in range(batch)])
    return torch.arange(s)[None, :] >= ends[:, None]


def _cache(batch: int, s_past: int) -> list[torch.Tensor]:
    sizes = Sizes()
    return [torch.randn(batch, sizes.groups, s_past, sizes.d_head) for _ in range(2 * sizes.layers)]


_CACHE_NAMES = tuple(f"past_{index}_{part}" for index in range(Sizes().layers) for part in ("k", "v"))
_CACHE_DIMS = [{0: "batch", 2: "s_past"}] * (2 * Sizes().layers)


def _unet(how: str) -> Case:
    return Case(
        lambda: UNet(how),
        lambda batch, h, w: (torch.randn(batch, 3, h, w), torch.rand(batch)),
        ("image", "time"),
        {"batch": 2, "h": 16, "w": 24},
        ({0: "batch"}, {0: "batch"}),
    )


CASES = {
    "mlp": Case(MLP, lambda batch: (torch.randn(batch, 20),), ("x",), {"batch": 3}, ({0: "batch"},)),
    "cnn": Case(
        CNN,
        lambda batch, h, w: (torch.randn(batch, 3, h, w),),
        ("image",),
        {"batch": 2, "h": 48, "w": 48},
        ({0: "batch", 2: "h", 3: "w"},),
    ),
    "layer_encoder": Case(
        LayerEncoder,
        lambda batch, s: (_tokens(batch, s), _padding(batch, s)),
        ("tokens", "padding"),
        {"batch": 2, "s": 11},
        ({0: "batch", 1: "s"}, {0: "batch", 1: "s"}),
    ),
    "encoder": Case(
        Encoder,
        lambda batch, s: (_tokens(batch, s), ~_padding(batch, s)),
        ("tokens", "visible"),
        {"batch": 2, "s": 11},
        ({0: "batch", 1: "s"}, {0: "batch", 1: "s"}),
    ),
    "decoder": Case(
        Decoder,
        lambda batch, s, s_past: (_tokens(batch, s), _cache(batch, s_past)),
        ("tokens", *_CACHE_NAMES),
        {"batch": 2, "s": 3, "s_past": 7},
        ({0: "batch", 1: "s"}, _CACHE_DIMS),
    ),
    "causal_decoder": Case(
        CausalDecoder,
        lambda batch, s: (_tokens(batch, s),),
        ("tokens",),
        {"batch": 2, "s": 9},
        ({0: "batch", 1: "s"},),
    ),
    "vit": Case(ViT, lambda batch: (torch.randn(batch, 3, 32, 32),), ("image",), {"batch": 2}, ({0: "batch"},)),
    "speech_encoder": Case(
        SpeechEncoder,
        lambda batch, t: (torch.randn(batch, 20, t),),
        ("features",),
        {"batch": 2, "t": 48},
        ({0: "batch", 2: "t"},),
    ),
    "unet_transposed": _unet("transposed"),
    "unet_nearest": _unet("nearest"),
    "unet_bilinear": _unet("bilinear"),
}


OPEN = ("mlp", "cnn", "encoder", "decoder", "causal_decoder", "vit")
"""Cases that are exported once, with open dimensions: an export takes longer than all else. In 16 bits they are with static shapes."""


@dataclass(frozen=True)
class Exported:
    """An ONNX model, inputs for it, and what PyTorch computes from them.

    Attributes:
        shapes: sizes of the model's open dimensions, those of the inputs.
    """

    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]
    eager: list[np.ndarray]
    shapes: dict[str, int] = field(default_factory=dict)


def _flat(arguments: Any) -> list[torch.Tensor]:
    return [arguments] if isinstance(arguments, torch.Tensor) else [t for item in arguments for t in _flat(item)]


def narrowed(arguments: Any, dtype: torch.dtype) -> Any:
    """Return arguments with their floats in another type."""
    if isinstance(arguments, torch.Tensor):
        return arguments.to(dtype) if arguments.is_floating_point() else arguments
    return type(arguments)(narrowed(item, dtype) for item in arguments)


def narrow(name: str, dtype: torch.dtype) -> Exported:
    """Return a case exported in a 16-bit type, its inputs, and what PyTorch computes in f32."""
    torch.manual_seed(1)
    case, module = CASES[name], make(name)
    arguments = case.inputs(**case.open)
    with torch.no_grad():
        results = module(*arguments)
    short = narrowed(arguments, dtype)
    program = torch.onnx.export(module.to(dtype), short, dynamo=True, input_names=case.names, verbose=False)
    flat = [_numpy(tensor) for tensor in _flat(short)]
    feeds = dict(zip(case.names, flat, strict=True))
    return Exported(program.model_proto, feeds, [tensor.numpy() for tensor in _flat(results)])


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    return tensor.float().numpy().astype(ml_dtypes.bfloat16) if tensor.dtype is torch.bfloat16 else tensor.numpy()


def make(name: str) -> nn.Module:
    """Return the module of a case, always with the same weights; running statistics are not those of a new module."""
    torch.manual_seed(0)
    module = CASES[name].build().eval()
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d)):
            part.running_mean.uniform_(-0.5, 0.5)
            part.running_var.uniform_(0.5, 1.5)
    return module


def run(name: str, module: nn.Module, sizes: dict[str, int]) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Return inputs of the given sizes and the module's results."""
    case = CASES[name]
    arguments = case.inputs(**sizes)
    with torch.no_grad():
        results = module(*arguments)
    feeds = {port: tensor.numpy() for port, tensor in zip(case.names, _flat(arguments), strict=True)}
    return feeds, [tensor.numpy() for tensor in _flat(results)]


@cache
def export(name: str, *, dynamic: bool) -> onnx.ModelProto:
    """Return the ONNX model of a case."""
    case = CASES[name]
    module = make(name)
    program = torch.onnx.export(
        module,
        case.inputs(**case.open),
        dynamo=True,
        dynamic_shapes=case.dims if dynamic else None,
        input_names=case.names,
        verbose=False,
    )
    return program.model_proto


def exported(name: str, sizes: dict[str, int] | None = None) -> Exported:
    """Return a case for inputs of its own sizes or of given ones, and PyTorch's results; without these it is static if not of `OPEN`."""
    torch.manual_seed(1)
    shapes = CASES[name].open | (sizes or {})
    feeds, eager = run(name, make(name), shapes)
    dynamic = sizes is not None or name in OPEN
    return Exported(export(name, dynamic=dynamic), feeds, eager, shapes if dynamic else {})
