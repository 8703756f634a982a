"""The op table's samples and whole models on port ``hip``, whose backend loads the plugin that HIPDNN_PLUGIN_DIR names.

``python -m engine_plugin.on_backend KIND FILE``, with KIND ``samples`` or ``models``, writes a line for each into the file, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from engine_plugin.plugin_samples import SAMPLES, feeds_of
from engine_plugin.steps import OnPort, run_steps
from engine_plugin.whole_models import MODELS, compare
from gpu.sample_programs import compile_sample
from hipdnn_mlir_runtime.errors import UnsupportedError

EQUAL, UNTAKEN = "equal", "not taken by the host port"
BACKEND, HOST = OnPort("gfx942", port="hip", plan_cache=False), OnPort(port="host")


def run_sample(name: str) -> str:
    """Run a sample's program; what came of it."""
    try:
        program = compile_sample(SAMPLES[name], "host")
    except UnsupportedError:
        return UNTAKEN
    feeds = feeds_of(SAMPLES[name])
    results = zip(run_steps(program, feeds, BACKEND), run_steps(program, feeds, HOST), strict=True)
    return EQUAL if all(ours.tobytes() == hosts.tobytes() for ours, hosts in results) else "the values differ"


def run_model(name: str) -> str:
    """Run a model's program; what came of it."""
    compare(name, BACKEND)
    return EQUAL


def main(kind: str, file: str) -> None:
    """Run all of them; one that fails does not end the others."""
    answers = {}
    for name in SAMPLES if kind == "samples" else MODELS:
        try:
            answers[name] = run_sample(name) if kind == "samples" else run_model(name)
        except Exception as error:  # noqa: BLE001 each failure is a line of its own
            answers[name] = f"failed: {error}"
        Path(file).write_text(json.dumps(answers, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
