"""The image classifiers that the onnx package ships, as parameters of tests."""

from __future__ import annotations

from typing import Any

import pytest

import light


def light_models(*names: str) -> list[Any]:
    """The files of all light models, those but the named ones marked as `nightly`.

    Two tests divide them between each other. DenseNet, VGG 19 and ZFNet, chains of what the others have, are left to it by both: they take
    longest.
    """
    known = {path.stem.removeprefix("light_"): path for path in light.paths()}
    assert {*names} <= {*known}
    return [
        pytest.param(path, marks=[] if name in names else [pytest.mark.nightly], id=path.stem)
        for name, path in known.items()
    ]
