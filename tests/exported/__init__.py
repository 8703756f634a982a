"""Models in plain torch.nn, exported to ONNX as their users do."""
