"""The host library's tests of kernels, for generated GPU kernels: one meaning, two implementations."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from gpu.emulated import run_kernel


def cases_of(module: ModuleType, *left_out: str) -> dict[str, Callable[..., Any]]:
    """The tests of a module of `host_kernels` but those of refusals and errors, which are the library's own, and those named."""
    return {
        name: test
        for name, test in vars(module).items()
        if name.startswith("test_") and "refused" not in name and "error" not in name and name not in left_out
    }


def emulation_of(module: ModuleType) -> Any:
    """A fixture with which the module's tests run in the emulator."""

    @pytest.fixture(autouse=True, scope="module")
    def emulated() -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "run_kernel", run_kernel)
            yield

    return emulated
