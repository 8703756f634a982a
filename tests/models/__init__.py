"""ONNX models with random weights, built node by node as exporters write them; tests and benchmarks share them."""

from models.builder import GraphBuilder
from models.decoder import decoder
from models.slices import slices
from models.transformer import encoder
from models.vision import mlp, mobilenet_v2, resnet, resnet50

__all__ = ["GraphBuilder", "decoder", "encoder", "mlp", "mobilenet_v2", "resnet", "resnet50", "slices"]
