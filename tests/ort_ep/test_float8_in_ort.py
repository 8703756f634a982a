"""Models quantized to floats of 8 bits run wholly on the provider: their weights are not known yet when it claims nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ort_ep import sessions
from test_float8 import product, reference, values


@pytest.mark.parametrize("options", [{}, {"gemm": True, "per_channel": True}], ids=["scale", "channels"])
def test_linear_layer(options: Any, tmp_path: Path) -> None:
    model, x = product(**options), values()
    session = sessions.make_session(model, tmp_path, wholly=True)
    wanted = reference(model, x)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
