"""The provider in the stock ONNX Runtime: models, placement, conformance cases."""
