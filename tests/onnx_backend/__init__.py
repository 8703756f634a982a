"""The onnx package's own conformance tests, run through a backend over this package."""
