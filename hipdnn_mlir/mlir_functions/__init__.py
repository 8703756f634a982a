"""MLIR functions that stand for ONNX operators: checked when an extension registers them, specialized for a node's operands."""
