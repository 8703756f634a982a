"""Models of one operator drawn over shapes, dtypes, broadcasts and attributes, against ONNX Runtime and onnx's reference evaluator."""
