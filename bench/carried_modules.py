"""PyTorch's modules as programs on a GPU, called with tensors that lie there, on a machine without the compiler.

``pack FOLDER --target sm_90`` compiles them. ``run FOLDER`` compares each with the module itself in f64, and runs
``bench --against torch`` on it. Both make the same weights from a seed.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The modules live with the tests, which this directory is not a part of.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils import _pytree as pytree

from hipdnn_mlir_runtime.cli.main import call
from hipdnn_mlir_runtime.torch import CompiledModule
from pytorch import modules


class Layer(nn.Module):
    """A layer of a transformer encoder, 768 wide."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(768, 2304), nn.Linear(768, 768)
        self.up, self.down = nn.Linear(768, 3072), nn.Linear(3072, 768)
        self.first, self.second = nn.LayerNorm(768), nn.LayerNorm(768)

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's result."""
        b, s, d = x.shape
        q, k, v = (t.view(b, s, 12, 64).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, s, d)
        x = self.first(x + self.out(y))
        return self.second(x + self.down(functional.gelu(self.up(x))))


MODULES: dict[str, Callable[[], tuple[nn.Module, tuple[Tensor, ...]]]] = {
    "perceptron": lambda: (modules.Perceptron(), (torch.randn(32, 8),)),
    "convnet": lambda: (modules.ConvNet(), (torch.randn(4, 3, 64, 64),)),
    "encoder": lambda: (modules.Encoder(), modules.Encoder.arguments(2, 16)),
    "layer-f16": lambda: (Layer().half(), (torch.randn(8, 128, 768).half(),)),
}
TOLERANCES = {torch.float32: 1e-4, torch.float16: 1e-2}
"""Of the largest difference, over the largest value of an output."""


def made(name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A module and arguments, the same ones each time."""
    torch.manual_seed(0)
    module, args = MODULES[name]()
    return module.eval(), args


def pack(folder: Path, target: str) -> None:
    """Compile all of them to files."""
    import hipdnn_mlir

    folder.mkdir(parents=True, exist_ok=True)
    for name in MODULES:
        hipdnn_mlir.compile(*made(name), target=target).save(folder / f"{name}.hipdnn")


def leaves(results: Any) -> list[Tensor]:
    """The tensors of nested results."""
    return [leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, Tensor)]


def error(got: Tensor, want: Tensor) -> float:
    """The largest difference, over the largest value."""
    return float((got.double().cpu() - want.double()).abs().max() / want.double().abs().max())


def run(folder: Path, device: str) -> int:
    """Compare and time all of them; return how many are wrong."""
    wrong = 0
    for name in MODULES:
        module, args = made(name)
        exact = copy.deepcopy(module).double()
        with torch.no_grad():
            want = leaves(exact(*(arg.double() if arg.is_floating_point() else arg for arg in args)))
        compiled = CompiledModule(folder / f"{name}.hipdnn")
        got = leaves(compiled(*(arg.to(device) for arg in args)))
        assert [tensor.device.type for tensor in got] == [device] * len(want)
        floats = [(a, b) for a, b in zip(got, want, strict=True) if a.is_floating_point()]
        errors = [(error(a, b), TOLERANCES[a.dtype]) for a, b in floats]
        same = all(torch.equal(a.cpu(), b) for a, b in zip(got, want, strict=True) if not a.is_floating_point())
        is_right = same and all(found <= limit for found, limit in errors)
        wrong += not is_right
        print(
            f"{name}: {'right' if is_right else 'WRONG'}, errors {', '.join(f'{found:.1e}' for found, _ in errors)}",
            flush=True,
        )
        with torch.no_grad():
            torch.export.save(torch.export.export(module, args), folder / f"{name}.pt2")
        loose = ["--rtol", "2e-2", "--atol", "2e-2"]
        command = [
            "bench",
            f"{folder / name}.hipdnn",
            "--reference",
            f"{folder / name}.pt2",
            "--against",
            "torch",
            "--duration",
            "2",
            *loose,
        ]
        wrong += call(command) != 0
    return wrong


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["pack", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="sm_90", help="of the programs; host runs on the CPU")
    given = parser.parse_args()
    if given.action == "pack":
        pack(given.folder, given.target)
        return 0
    return run(given.folder, "cpu" if given.target == "host" else "cuda")


if __name__ == "__main__":
    sys.exit(main())
