"""Decoders as onnxruntime-genai's model builder exports them, and text generated with them."""
