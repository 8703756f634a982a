"""Train the digit classifier and write ``digits.onnx``.

Needs PyTorch besides this package's ``examples`` extra; the trained model is committed, so nothing else does.
The last 360 images, by other writers, are held out: training never sees them, ``run.py`` measures on them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from torch import nn

BATCH = 60
EPOCHS = 40
HELD_OUT = 360
OUTPUT = Path(__file__).with_name("digits.onnx")


class Digits(nn.Module):
    """Two convolutions, a pool, a residual block, a global pool and a linear layer; images are n 1 8 8."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.conv2, self.bn2 = nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32)
        self.conv3, self.bn3 = nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32)
        self.conv4, self.bn4 = nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32)
        self.fc = nn.Linear(32, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return logits n 10."""
        x = self.bn1(self.conv1(image)).relu()
        x = nn.functional.max_pool2d(self.bn2(self.conv2(x)).relu(), 2)
        y = self.bn3(self.conv3(x)).relu()
        x = (x + self.bn4(self.conv4(y))).relu()
        return self.fc(x.mean((2, 3)))


def train(images: torch.Tensor, labels: torch.Tensor) -> Digits:
    """Fit the classifier with one-pixel shifts as augmentation; images are n 1 8 8 in 0..1."""
    model = Digits()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    steps = -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, epochs=EPOCHS, steps_per_epoch=steps)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(images)).split(BATCH):
            shift = torch.randint(-1, 2, (2,)).tolist()
            batch = torch.roll(images[rows], shift, (2, 3))
            loss = nn.functional.cross_entropy(model(batch), labels[rows], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def to_onnx(model: Digits) -> onnx.ModelProto:
    """Write the classifier node by node, batch norms kept as nodes in inference form."""
    weights = [
        numpy_helper.from_array(value.numpy(), name)
        for name, value in model.state_dict().items()
        if value.dtype == torch.float32
    ]
    nodes: list[onnx.NodeProto] = []

    def add(op: str, name: str, *inputs: str, **attributes: object) -> str:
        nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def conv_bn(index: int, x: str) -> str:
        y = add("Conv", f"conv{index}", x, f"conv{index}.weight", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        scale = [f"bn{index}.{part}" for part in ("weight", "bias", "running_mean", "running_var")]
        return add("BatchNormalization", f"bn{index}", y, *scale, epsilon=1e-5)

    x = add("Relu", "relu1", conv_bn(1, "image"))
    x = add("Relu", "relu2", conv_bn(2, x))
    x = add("MaxPool", "pool", x, kernel_shape=[2, 2], strides=[2, 2])
    y = add("Relu", "relu3", conv_bn(3, x))
    x = add("Relu", "relu4", add("Add", "residual", x, conv_bn(4, y)))
    x = add("Flatten", "features", add("GlobalAveragePool", "mean", x))
    x = add("Gemm", "logits", x, "fc.weight", "fc.bias", transB=1)
    add("Softmax", "probabilities", x, axis=-1)
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [BATCH, 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [BATCH, 10])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="digits")


def main() -> None:
    """Train, report held-out accuracy, write the model."""
    torch.manual_seed(0)
    data = load_digits()
    images = torch.from_numpy((data.images / 16).astype(np.float32))[:, None]
    labels = torch.from_numpy(data.target.astype(np.int64))
    model = train(images[:-HELD_OUT], labels[:-HELD_OUT])
    with torch.no_grad():
        right = (model(images[-HELD_OUT:]).argmax(1) == labels[-HELD_OUT:]).float().mean().item()
    proto = to_onnx(model)
    onnx.checker.check_model(proto, full_check=True)
    onnx.save(proto, OUTPUT)
    print(f"held-out accuracy {right:.2%}, {OUTPUT.name} {OUTPUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
