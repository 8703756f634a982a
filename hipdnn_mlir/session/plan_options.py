"""The options that choose plans: checked, and as a device takes them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from ..errors import ModelError
from .devices import DeviceOptions, plan_folder

PlanCache = str | os.PathLike[str] | bool | None
Paths = Sequence[str | os.PathLike[str]]


class PlanOptions(TypedDict, total=False):
    """The options of a ``Session`` that choose a device and its plans, as it documents them."""

    device: int
    tune: int
    engine: str
    knobs: Mapping[str, int | float | str]
    tf32: bool | None
    plan_cache: PlanCache
    compare_plans: bool
    policies: Sequence[str]
    plugin_dirs: Paths
    plugin_mode: str


def device_options(
    port: str, plans: PlanOptions, *, is_tf32: bool, threads: int = 0, graphs: bool = False
) -> DeviceOptions:
    """Return what a device is opened with.

    Args:
        port: Name of the port.
        plans: The options of the caller.
        is_tf32: Whether the program was compiled for products that round, where the caller does not say.
        threads: As of ``DeviceOptions``.
        graphs: As of ``DeviceOptions``.

    Raises:
        ModelError: An option is out of range, or there is no cache folder.
    """
    tune, tf32 = plans.get("tune", 0), plans.get("tf32")
    if not isinstance(tune, int) or tune < 0:
        raise ModelError("tune must be a number: 0 (no timing) or more", got=repr(tune))
    device = plans.get("device", 0)
    if not isinstance(device, int) or device < 0:
        raise ModelError("device must be the number of a GPU, from 0", got=repr(device))
    return DeviceOptions(
        port=port,
        ordinal=device,
        threads=threads,
        graphs=graphs,
        tune=tune,
        engine=plans.get("engine", ""),
        knobs=_knobs(plans.get("knobs", {})),
        tf32=is_tf32 if tf32 is None else tf32,
        plan_folder=plan_folder(port, plans.get("plan_cache")),
        compare_plans=plans.get("compare_plans", True),
        policies=_listed("policies", plans.get("policies", ())),
        plugin_dirs=absolute_paths(plans.get("plugin_dirs", ())),
        plugin_mode=plans.get("plugin_mode", "additive"),
    )


def absolute_paths(paths: Paths) -> tuple[str, ...]:
    """Return the folders or files of ``plugin_dirs`` as absolute paths.

    Raises:
        ModelError: It is one path rather than a list.
    """
    listed = _listed("plugin_dirs", paths)
    if "" in listed:
        raise ModelError("plugin_dirs has an empty path", expected="folders or files")
    return tuple(str(Path(path).expanduser().absolute()) for path in listed)


def _knobs(values: object) -> tuple[str, ...]:
    if not isinstance(values, Mapping):
        raise ModelError("knobs must be a dict", expected='{"NAME": value}', got=repr(values))
    return tuple(f"{name}={int(value) if isinstance(value, bool) else value}" for name, value in sorted(values.items()))


def _listed(option: str, values: object) -> tuple[str, ...]:
    if isinstance(values, str | os.PathLike):
        raise ModelError(f"{option} must be a list", expected=f"[{os.fspath(values)!r}]", got=repr(os.fspath(values)))
    if not isinstance(values, Iterable):
        raise ModelError(f"{option} must be a list", got=repr(values))
    return tuple(os.fspath(value) if isinstance(value, os.PathLike) else str(value) for value in values)
