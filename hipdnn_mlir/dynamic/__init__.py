"""Dynamic dimensions: what differs between sizes, as expressions of symbols. Only this room compares sizes; it knows no ONNX."""
