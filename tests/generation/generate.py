"""Generates tokens with onnxruntime-genai: ``python -m generation.generate FOLDER PROVIDER LENGTH`` prints what came of it as JSON.

PROVIDER is `cpu` or `hipdnn`. A process of its own, since genai and a provider's library stay in a process for good.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import onnxruntime_genai as og

from hipdnn_mlir_runtime import ort_ep

PROMPT = [3, 4, 5, 6, 7]


def generate(folder: str, provider: str, length: int) -> dict[str, Any]:
    """The tokens of a greedy search up to a length, and how many milliseconds each step took."""
    config = og.Config(folder)
    config.clear_providers()
    if provider == "hipdnn":
        og.register_execution_provider_library(ort_ep.get_ep_name(), ort_ep.get_library_path())
        config.append_provider(ort_ep.get_ep_name())
    model = og.Model(config)
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=length, min_length=length, do_sample=False)
    generator = og.Generator(model, params)
    times = []
    start = time.perf_counter()
    generator.append_tokens([PROMPT])
    while not generator.is_done():
        generator.generate_next_token()
        now = time.perf_counter()
        times.append(1e3 * (now - start))
        start = now
    return {"tokens": generator.get_sequence(0).tolist(), "milliseconds": times}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(generate(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
