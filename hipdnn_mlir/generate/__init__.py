"""Text generation with decoders that onnxruntime-genai's model builder exported. This room owns texts and caches; programs know neither.

from hipdnn_mlir.generate import TextGenerator

model = TextGenerator("llama")
for token in model.stream("Once upon a time", max_new_tokens=50):
    print(token.text, end="", flush=True)
"""

from .batch import Counts
from .batch_generator import BatchGenerator
from .generator import Completion, TextGenerator
from .request import Request
from .sequences import Sequences, Token

__all__ = ["BatchGenerator", "Completion", "Counts", "Request", "Sequences", "TextGenerator", "Token"]
