"""Under which keys ONNX Runtime's provider would look for a model's programs.

A key is made of the model as ONNX Runtime hands it to the provider, after its own optimizations. So ONNX Runtime is asked, by a session
that compiles nothing (the provider's option ``cache_keys``).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .. import ort_ep
from ..errors import ModelError
from .cache import entries_of, folder_of
from .command import needed_compiler
from .tables import table


def key_report(given: SimpleNamespace) -> dict[str, Any]:
    """Return the keys of a model's programs, for a session with the provider's options that are given and others by default.

    Args:
        given: ``model``, and the options of the command.

    Returns:
        ``directory``, ``made_from`` (what keys depend on beside the model), ``programs``: ``node``, ``nodes`` (how many of the model's),
        ``model`` (digest of these nodes and their weights), ``sizes`` (its buckets), ``key``, ``path`` and ``is_kept`` (whether it is
        there) of each.

    Raises:
        ModelError: ONNX Runtime is missing, or refuses the model or an option.
    """
    try:
        import onnxruntime as ort
    except ImportError as error:
        message = "ONNX Runtime is not installed, and it decides what a key is made of"
        raise ModelError(message, hint="pip install onnxruntime") from error
    folder = folder_of(given)
    options = ort.SessionOptions()
    options.log_severity_level = 2 if given.verbose else 4
    _override(ort, options, given.model, given.shapes)
    with tempfile.TemporaryDirectory(prefix="hipdnn-mlir-") as scratch:
        keys = Path(scratch, "keys.json")
        try:
            ort_ep.add_to_session_options(options, _provider_options(given, folder) | {"cache_keys": str(keys)})
            ort.InferenceSession(str(given.model), sess_options=options)
        except Exception as error:
            raise ModelError(f"no session of ONNX Runtime: {error}", where=str(given.model)) from error
        if not keys.exists():
            needed_compiler("cache key")  # without one nothing is placed
            return {"directory": str(folder), "made_from": {}, "programs": []}
        found: dict[str, Any] = json.loads(keys.read_text())
    kept = {entry.path for entry in entries_of(folder)}
    for row in found["programs"]:
        path = folder / f"{row['key']}.hipdnn"
        row |= {"path": str(path), "is_kept": path in kept}
    return {"directory": str(folder), **found}


def key_text(data: Mapping[str, Any]) -> str:
    """Return a ``key_report`` as a table."""
    rows = [(row["key"], row["nodes"], "yes" if row["is_kept"] else "no") for row in data["programs"]]
    if not rows:
        return "no program: the provider takes no node of the model (hipdnn-mlir explain says why)"
    sources = [(name, value) for name, value in data["made_from"].items() if value]
    return (
        table(f"Programs in {data['directory']}", ("key", "nodes", "kept"), rows, right=["nodes"])
        + "\n\n"
        + table("Made from the model, and from", ("", ""), sources)
    )


def _provider_options(given: SimpleNamespace, folder: Path) -> dict[str, str]:
    """Return the provider's options in its own form."""
    buckets = ";".join(f"{name}={','.join(map(str, sizes))}" for name, sizes in dict(given.buckets).items())
    texts = {"target": given.target, "buckets": buckets, "precision": given.precision, "placement": given.placement}
    return {"cache_dir": str(folder.absolute()), **{name: text for name, text in texts.items() if text}}


def _override(ort: Any, options: Any, model: Path, shapes: Mapping[str, Any]) -> None:
    """Give dimensions sizes, as applications do."""
    if not shapes:
        return
    plain = ort.SessionOptions()
    plain.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    inputs = ort.InferenceSession(str(model), plain, providers=["CPUExecutionProvider"]).get_inputs()
    names = sorted({dim for port in inputs for dim in port.shape if isinstance(dim, str)})
    for name, size in shapes.items():
        if name not in names or not isinstance(size, int) or size < 1:
            expected = f"NAME=SIZE for one of the model's dynamic dimensions ({', '.join(names) or 'it has none'})"
            raise ModelError("bad value", where="--shape", expected=expected, got=repr(f"{name}={size}"))
        options.add_free_dimension_override_by_name(name, size)
