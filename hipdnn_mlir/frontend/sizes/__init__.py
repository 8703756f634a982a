"""What an ONNX model says of its own dynamic dimensions: inputs, sample sizes, facts that its nodes state."""
