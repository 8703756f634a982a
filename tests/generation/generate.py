"""Generates tokens with onnxruntime-genai, and prints what came of it as JSON.

``python -m generation.generate FOLDER PROVIDER LENGTH [PROMPT]``: PROVIDER is `cpu`, `hipdnn`, `hipdnn:` and a precision, or `virtual`
for its virtual GPU; PROMPT is how many tokens the text begins with, 5 if left out. A process of its own, since genai and a provider's
library stay in a process for good.
"""

from __future__ import annotations

import json
import sys
import time
from functools import cache
from typing import Any

import onnxruntime_genai as og

from hipdnn_mlir_runtime import ort_ep

AGAIN, FEW = 3, 10


def load(folder: str, provider: str, threads: int = 0) -> og.Model:
    """A model on a provider, as named above; 0 threads are as many as there are CPUs."""
    config = og.Config(folder)
    config.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}))
    config.clear_providers()
    kind, _, precision = provider.partition(":")
    if kind != "cpu":
        name = {"hipdnn": ort_ep.get_ep_name(), "virtual": "hipdnn.virtual"}[kind]
        _register(name)
        config.append_provider(ort_ep.get_ep_name())
        config.set_provider_option(ort_ep.get_ep_name(), "threads", str(threads))
        if precision:
            config.set_provider_option(ort_ep.get_ep_name(), "precision", precision)
    return og.Model(config)


@cache
def _register(name: str) -> None:
    og.register_execution_provider_library(name, ort_ep.get_library_path())


def generate(folder: str, provider: str, length: int, prompt: int = 5) -> dict[str, Any]:
    """The tokens of a greedy search up to a length, and how many milliseconds each step took, the prompt's first.

    Also those of the `AGAIN` texts that follow, of the same prompt, as far as `FEW` tokens behind the first one.
    """
    model = load(folder, provider)
    tokens, times = _text(model, prompt, length)
    texts = [_text(model, prompt, min(length, prompt + 1 + FEW))[1] for _ in range(AGAIN)]
    return {"tokens": tokens, "milliseconds": times, "again": texts}


def _text(model: og.Model, prompt: int, length: int) -> tuple[list[int], list[float]]:
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=length, min_length=length, do_sample=False)
    generator = og.Generator(model, params)
    times = []
    start = time.perf_counter()
    generator.append_tokens([[3 + index % 97 for index in range(prompt)]])
    while not generator.is_done():
        generator.generate_next_token()
        now = time.perf_counter()
        times.append(1e3 * (now - start))
        start = now
    return generator.get_sequence(0).tolist(), times


if __name__ == "__main__":
    sys.stdout.write(json.dumps(generate(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))))
