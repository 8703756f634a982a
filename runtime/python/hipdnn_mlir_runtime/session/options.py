"""The options of a session: their types, and what a device is opened with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from .. import _runtime
from ..errors import ModelError
from ..options import Settings, checked, options_of

_PORTS_WITH_COSTLY_PLANS = ("hip", "cuda")
"""Ports whose plans are kept between processes unless told otherwise: their libraries compile code or search for a plan."""

# options: generated


class SessionOptions(TypedDict, total=False):
    """The options of a ``Session``."""

    port: str | None
    """Where to run: `host`, `hip` or `cuda`. By default what runs the program's target."""
    device: int
    """Number of the GPU to run on, as `hipdnn-mlir devices` lists it. Arrays on another GPU are refused."""
    threads: int
    """CPU threads of one run where the device is the CPU. 0 takes all CPUs that the process may use."""
    max_specializations: int
    """Specializations that stay loaded, one for each combination of sizes of the dynamic dimensions. The one used least recently goes
    first."""
    allow_code: bool
    """Load programs that hold compiled code for a GPU. Without it such a program is refused before anything of it reaches a device: for
    files from people whose code you would not run."""
    trusted_key: str | os.PathLike[str] | None
    """Load a program file only with a signature beside it that fits this public ed25519 key, a PEM file (docs/security.md)."""
    memory_limit_mb: int
    """Most MiB that a program may need at the sizes of a run: constants, inputs, outputs, and what lies between steps. One that needs
    more is refused before it is allocated. 0 for no limit."""
    graph_capture: bool
    """Capture runs on a GPU as device graphs and replay them while arrays keep their addresses. Ports without device graphs run step by
    step."""
    autotune: int
    """Number of candidate plans to time for each graph; the fastest one is kept. 0 takes the first candidate that builds."""
    engine: str
    """Engine that runs every graph it takes, by its name in `hipdnn-mlir devices`. By default the library's order decides."""
    knobs: Mapping[str, int | float | str]
    """Knobs to set for the engine of `engine`. If the engine does not take them, a line in the log says why and its own values are
    used."""
    tf32: bool | None
    """Matmuls and convolutions of f32 may round their operands to TF32 where the device can do that. By default as the program was
    compiled (`precision`)."""
    plan_cache: str | os.PathLike[str] | bool | None
    """Folder that keeps choices and plans between processes; True for `hipdnn-mlir/plans` in the user's cache folder, False for none.
    By default True on a GPU and False on the CPU."""
    compare_plans: bool
    """A GPU's plan is used only after its results on random operands equal those of the CPU's library. Each graph is compared once
    where plans are kept."""
    policies: Sequence[str]
    """Heuristic policies of AMD's library that rank engines, in order, by their names in `hipdnn-mlir devices`. By default the
    library's own."""
    plugin_dirs: Sequence[str | os.PathLike[str]]
    """Folders or files of hipDNN engine plugins to load. All sessions of a process share them, and only port `hip` takes any."""
    plugin_mode: Literal["additive", "absolute"]
    """`additive` loads plugins beside the library's own, `absolute` in their place."""


# end of options


def device_options(given: Mapping[str, Any], port: str, *, is_tf32: bool) -> Settings:
    """Return what a device is opened with.

    Args:
        given: Options of a session.
        port: Where to run unless they say so.
        is_tf32: Whether matmuls and convolutions of f32 may round to TF32 unless they say so.

    Raises:
        TypeError: There is no such option.
        ModelError: A value is of another type or out of range, or there is no cache folder.
    """
    options = checked("session", given)
    made = Settings({name: options[name] for name in options_of("runtime")})
    made["port"] = made["port"] or port
    made["tf32"] = is_tf32 if made["tf32"] is None else made["tf32"]
    made["plan_cache"] = _plan_folder(made["port"], made["plan_cache"])
    return made


def _plan_folder(port: str, given: str | bool | None) -> str:
    """Return the folder of the plans of a port: the one that was given, or the user's own where plans are costly; empty for none."""
    if isinstance(given, str):
        return given
    if given is False or (given is None and port not in _PORTS_WITH_COSTLY_PLANS):
        return ""
    folder = _runtime.default_cache_directory()
    if not folder and given:
        raise ModelError("no folder for plans", hint="set HOME or XDG_CACHE_HOME, or name a folder")
    return str(Path(folder, "plans")) if folder else ""
