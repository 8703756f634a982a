"""Writes the ONNX file of a model that is timed: `python -P -m rocm.report.timed_model NAME FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx


def decoder(path: Path) -> None:
    """One step of a decoder of the LLaMA family (8 heads, 4 layers) with 255 past keys and values, as PyTorch exports it."""
    import torch

    from exported.decoder import Decoder, Sizes

    sizes = Sizes(vocabulary=4096, width=512, heads=8, groups=2, layers=4)
    torch.manual_seed(0)
    past = [torch.randn(1, sizes.groups, 255, sizes.d_head) for _ in range(2 * sizes.layers)]
    names = ["tokens", *(f"past_{index}" for index in range(len(past)))]
    made = torch.onnx.export(
        Decoder(sizes).eval(),
        (torch.zeros(1, 1, dtype=torch.int64), past),
        dynamo=True,
        verbose=False,
        input_names=names,
    )
    made.save(path)


def main(name: str, file: str) -> None:
    """Write the file."""
    if name == "decoder":
        decoder(Path(file))
        return
    import carried

    onnx.save(carried.MODELS[name](), file)


if __name__ == "__main__":
    main(*sys.argv[1:])
