"""ONNX or PyTorch in, torch dialect out: files, checks, shapes, folding, decompositions. Only this room knows ONNX; it runs no pass."""
