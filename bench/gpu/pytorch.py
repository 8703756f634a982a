"""The models of the GPU table in PyTorch, each in the three ways that PyTorch runs them: eager, recorded as a CUDA graph, compiled.

``python bench/gpu/pytorch.py [--models ...]`` prints a line each; ``run.py --pytorch`` times them beside the programs. Weights are random:
only time is asked for. Layout and settings are PyTorch's best: channels-last images, batch norms in the weights, TF32 where the model is of
f32, its own choice of cuDNN plans.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import torch
import torchvision
from torch import nn

INPUT_SETS = 4
SERIES, RUNS = 15, 20
Inputs = tuple[torch.Tensor, ...]


class Layer(nn.Module):
    """One layer of the encoder: normalization behind the sums, an additive mask."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(n, s, d) and (n, 1, 1, s) -> (n, s, d)."""
        n, s, d = x.shape
        q, k, v = self.qkv(x).view(n, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        joined = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(n, s, d)
        x = self.norms[0](x + self.join(joined))
        return self.norms[1](x + self.down(nn.functional.gelu(self.up(x))))


class Encoder(nn.Module):
    """Twelve layers."""

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, inner: int = 3072) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer(width, heads, inner) for _ in range(layers)])

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(n, s, d) and (n, 1, 1, s) -> (n, s, d)."""
        for layer in self.layers:
            x = layer(x, mask)
        return x


def _resnet50(batch: int, dtype: torch.dtype) -> tuple[nn.Module, Callable[[], Inputs]]:
    model = torchvision.models.resnet50(weights=None).to("cuda", dtype, memory_format=torch.channels_last).eval()
    for name, module in model.named_modules():  # as inference has them: batch norms in the weights
        for place in ("1", "2", "3"):
            if hasattr(module, f"conv{place}") and hasattr(module, f"bn{place}"):
                conv, norm = getattr(module, f"conv{place}"), getattr(module, f"bn{place}")
                setattr(module, f"conv{place}", nn.utils.fusion.fuse_conv_bn_eval(conv, norm))
                setattr(module, f"bn{place}", nn.Identity())
        if name.endswith("downsample.0"):
            parent = model.get_submodule(name.removesuffix(".0"))
            parent[0] = nn.utils.fusion.fuse_conv_bn_eval(parent[0], parent[1])
            parent[1] = nn.Identity()
    shape = (batch, 3, 224, 224)
    return model, lambda: (torch.randn(shape, device="cuda", dtype=dtype).to(memory_format=torch.channels_last),)


def _encoder(batch: int) -> tuple[nn.Module, Callable[[], Inputs]]:
    def inputs() -> Inputs:
        x, mask = torch.randn(batch, 128, 768), torch.randn(batch, 1, 1, 128)
        return x.to("cuda", torch.half), mask.to("cuda", torch.half)

    return Encoder().to("cuda", torch.half).eval(), inputs


def _mlp() -> tuple[nn.Module, Callable[[], Inputs]]:
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).to("cuda", torch.half).eval()
    return model, lambda: (torch.randn(1, 1024, device="cuda", dtype=torch.half),)


MODELS: dict[str, Callable[[], tuple[nn.Module, Callable[[], Inputs]]]] = {
    "resnet50": lambda: _resnet50(1, torch.float32),
    "resnet50-b32": lambda: _resnet50(32, torch.float32),
    "resnet50-f16": lambda: _resnet50(1, torch.half),
    "resnet50-f16-b32": lambda: _resnet50(32, torch.half),
    "encoder-f16": lambda: _encoder(1),
    "encoder-f16-b32": lambda: _encoder(32),
    "mlp-f16": _mlp,
}
"""By the names that ``bench/carried.py`` has; those of f32 run in TF32."""


def time_us(call: Callable[[int], object], stream: torch.cuda.Stream) -> float:
    """Median microseconds of one call, by events around series of calls that rotate among the input sets."""
    for index in range(3 * INPUT_SETS):
        call(index % INPUT_SETS)
    times = []
    for _ in range(SERIES):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record(stream)
        for index in range(RUNS):
            call(index % INPUT_SETS)
        stop.record(stream)
        stop.synchronize()
        times.append(1e3 * start.elapsed_time(stop) / RUNS)
    return statistics.median(times)


def _recorded(
    model: Callable[..., torch.Tensor], feeds: list[Inputs], stream: torch.cuda.Stream
) -> Callable[[int], None]:
    """One CUDA graph per set of inputs."""
    graphs = []
    for feed in feeds:
        for _ in range(3):
            model(*feed)
        torch.cuda.synchronize()
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1], stream=stream):
            model(*feed)
    return lambda index: graphs[index].replay()


def times_of(name: str) -> dict[str, float]:
    """Microseconds of one run by way."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    model, inputs = MODELS[name]()
    feeds = [inputs() for _ in range(INPUT_SETS)]
    stream = torch.cuda.Stream()
    found = {}
    with torch.inference_mode(), torch.cuda.stream(stream):
        found["eager"] = time_us(lambda index: model(*feeds[index]), stream)
        found["graph"] = time_us(_recorded(model, feeds, stream), stream)
        compiled = torch.compile(model)
        found["compiled, graph"] = time_us(_recorded(compiled, feeds, stream), stream)
    torch.compiler.reset()
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time PyTorch's ways to run the models of the GPU table.")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "cuDNN", torch.backends.cudnn.version())
    for name in parser.parse_args().models:
        print(f"{name:20}", "  ".join(f"{way} {us:8.1f} us" for way, us in times_of(name).items()), flush=True)


if __name__ == "__main__":
    main()
