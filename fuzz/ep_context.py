"""A model of EPContext nodes in ONNX Runtime's provider: a session is made, and run where it is small; both may end in errors."""

from __future__ import annotations

import copy
import json
import random
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

import hipdnn_mlir
import models as small_models
from bucket_models import SAFE
from forked import Arguments, run
from hipdnn_mlir_runtime import ort_ep
from model_mutations import NAMES, NUMBERS, PATHS
from model_mutations import mutated as mutated_model

RUN_ELEMENTS = 1 << 16
PROVIDER = ort_ep.get_ep_name()
PROGRAM = "hipdnn_program"


def open_and_run(data: bytes) -> None:
    """Make a session of a model's bytes on the provider, which has no compiler."""
    Path("model.onnx").write_bytes(data)
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    devices = [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]
    settings.add_provider_for_devices(devices[:1], {"compiler": "none", "cache_limit_mb": "0", "threads": "1"})
    try:
        session = ort.InferenceSession("model.onnx", sess_options=settings)
        session.disable_fallback()
        session.run(None, _inputs(session))
    except Exception:  # noqa: BLE001 - ONNX Runtime's exceptions have no common class of their own
        return


def _inputs(session: ort.InferenceSession) -> dict[str, Any]:
    made = {}
    for each in session.get_inputs():
        dims = [size if isinstance(size, int) else 3 for size in each.shape]
        if np.prod(dims, dtype=float) > RUN_ELEMENTS:
            raise ValueError("large")
        made[each.name] = np.ones(dims, _TYPES.get(each.type, np.float32))
    return made


_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}


def mutated(seeds: Sequence[bytes], draw: random.Random) -> bytes:
    """A mutation of the program in a node, or of the model around it."""
    if draw.random() < 0.2:
        return mutated_model(seeds, draw)
    model = onnx.ModelProto()
    model.ParseFromString(draw.choice(seeds))
    for node in model.graph.node:
        attributes = {each.name: each for each in node.attribute}
        if draw.random() < 0.1:
            _change_attribute(node, attributes, draw)
        else:
            blob = attributes["ep_cache_context"]
            blob.s = _changed_container(blob.s, draw)
    return model.SerializeToString()


def _change_attribute(node: onnx.NodeProto, attributes: dict[str, onnx.AttributeProto], draw: random.Random) -> None:
    kind = draw.randrange(4)
    if kind == 0:
        attributes["embed_mode"].i = draw.choice(NUMBERS)
    elif kind == 1:
        attributes["embed_mode"].i = 0
        attributes["ep_cache_context"].s = draw.choice(PATHS).encode()
    elif kind == 2:
        texts = (
            f"hipdnn_mlir={draw.choice(NAMES)};format={draw.choice(NUMBERS)};target={draw.choice(['host', 'sm_90'])}",
            ";;=;",
            *NAMES,
        )
        node.attribute.append(onnx.helper.make_attribute("ep_sdk_version", draw.choice(texts)))
    else:
        node.attribute.remove(draw.choice(node.attribute))


def _changed_container(blob: bytes, draw: random.Random) -> bytes:
    """The program's text changes in a few places; the checksum is left out, the lengths hold."""
    (length,) = struct.unpack_from("<Q", blob)
    header = json.loads(blob[8 : 8 + length])
    program = json.loads(header["__metadata__"][PROGRAM])
    for _ in range(draw.randint(1, 3)):
        _change_json(program if draw.random() < 0.95 else header, draw)
    header["__metadata__"] = {PROGRAM: json.dumps(program)}
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    data = blob[8 + length :]
    return (
        struct.pack("<Q", len(text)) + text + (data if draw.random() < 0.9 else data[: draw.randrange(len(data) + 1)])
    )


def _change_json(tree: Any, draw: random.Random) -> None:
    """One member of a list or object somewhere in a tree becomes another, goes, or comes twice."""
    places = list(_places(tree))
    holder, key = draw.choice(places)
    old = holder[key]
    kind = draw.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        if isinstance(holder, list):
            holder.append(copy.deepcopy(old))
    elif kind == 2:  # another member of its type
        other, at = draw.choice([place for place in places if type(place[0][place[1]]) is type(old)])
        holder[key] = copy.deepcopy(other[at])
    elif isinstance(old, bool) or not isinstance(old, int):
        holder[key] = draw.choice([*NUMBERS, *NAMES[:6], None, True, [], {}, 0.5, old])
    else:
        holder[key] = old + draw.choice((-1, 1)) if draw.random() < 0.5 else draw.choice(NUMBERS)


def _places(tree: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    stack = [tree]
    while stack:
        holder = stack.pop()
        members = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, member in members:
            found.append((holder, key))
            if isinstance(member, (dict, list)):
                stack.append(member)
    return found


def context_model(model: onnx.ModelProto) -> bytes:
    """The model as one EPContext node, as the provider writes it."""
    hipdnn_mlir.compile(model).save("seed.hipdnn")
    blob = Path("seed.hipdnn").read_bytes()
    Path("seed.hipdnn").unlink()
    names = ([value.name for value in values] for values in (model.graph.input, model.graph.output))
    attributes = {
        "main_context": 1,
        "embed_mode": 1,
        "ep_cache_context": blob,
        "source": PROVIDER,
        "partition_name": "part",
    }
    node = onnx.helper.make_node("EPContext", *names, name="context", domain="com.microsoft", **attributes)
    graph = onnx.helper.make_graph([node], "contexts", model.graph.input, model.graph.output)
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def seeds() -> list[bytes]:
    """Small models, some with open dims."""
    made = [small_models.mlp(4, (8, 16, 4)), small_models.resnet(), *(model for model, _ in SAFE.values())]
    return [context_model(model) for model in made]


def main() -> int:
    """Run the target; the exit status is 1 where an input ended as none may."""
    found = seeds()
    ort.register_execution_provider_library("hipdnn", ort_ep.get_library_path())
    return run(open_and_run, mutated, found, Arguments.parse(sys.argv[1:])) > 0


if __name__ == "__main__":
    sys.exit(main())
