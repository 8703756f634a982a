"""Steps of a decoder whose mask grows are served by one program, which gets the mask filled up with zeros."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from test_decoder_caches import Run, assert_valid_equal, cache_feeds, cache_model

from .sessions import make_session, reference

ROOM = 16
STEPS: list[Run] = [(3, 1, ROOM, [length, 2, length - 1]) for length in range(4, ROOM + 1)]
OTHERS: list[Run] = [
    (3, 5, ROOM, [5, 2, 4]),
    (1, 4, ROOM, [10]),
    (1, 1, 5, [6]),
    (1, 1, ROOM, [ROOM]),
]
"""Prompts, a cache that grows, a mask as long as the cache."""


@pytest.mark.parametrize("attributes", ["", ", do_rotary=1, local_window_size=4"])
def test_one_program_serves_masks_that_grow(attributes: str, tmp_path: Path) -> None:
    model = cache_model(attributes)
    profile = tmp_path / "profile.json"
    session = make_session(model, tmp_path / "cache", options={"profile": str(profile)}, wholly=True)
    for run in (*STEPS, *OTHERS, *STEPS):
        feeds = cache_feeds(model, run)
        assert_valid_equal(session.run(None, feeds), reference(model, feeds), run)
    del session
    runs = {node["inputs"]: node["runs"] for node in json.loads(profile.read_text())["nodes"]}
    assert max(runs.values()) == 2 * len(STEPS)
    assert len(runs) == 1 + len(OTHERS)
