"""Devices: opening them with their settings, listing them, and what the libraries behind them log."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import logging
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import _runtime
from ..errors import DeviceError, ModelError

_log = logging.getLogger(__name__)

PORTS = ("host", "hip", "cuda")
"""Names of the ports, as the runtime has them."""

_PORTS_WITH_COSTLY_PLANS = ("hip", "cuda")
"""Ports whose plans are kept between processes unless told otherwise: their libraries compile code or search for a plan."""

_PORTS_WITH_PLUGINS = ("hip",)
"""Ports whose libraries load engines from plugins."""

_LEVELS = (logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
"""Python's levels by hipDNN's severity."""


@dataclass(frozen=True)
class DeviceOptions:
    """What devices are told apart by: sessions with equal options share one, and with it the plans of equal graphs.

    Attributes:
        port: Name of the port.
        ordinal: Number of the device on its port.
        threads: Threads of one run where the port computes on the CPU; 0 for all.
        graphs: Record runs as graphs of the device.
        tune: Plans to time for each graph; 0 takes the first that builds.
        engine: Engine that graphs go to where it takes them; empty for the library's order.
        knobs: Knobs to set for that engine, ``NAME=VALUE`` each.
        tf32: Products of f32 may round to TF32.
        plan_folder: Where plans are kept; empty for nowhere.
        compare_plans: Use a plan only after it has answered as the host library does.
        policies: Heuristic policies in the order they are asked; empty for the library's own.
        plugin_dirs: Absolute paths of engine plugins, folders or files.
        plugin_mode: ``additive`` for plugins beside the library's own, ``absolute`` for these alone.
    """

    port: str
    ordinal: int = 0
    threads: int = 0
    graphs: bool = False
    tune: int = 0
    engine: str = ""
    knobs: tuple[str, ...] = ()
    tf32: bool = False
    plan_folder: str = ""
    compare_plans: bool = True
    policies: tuple[str, ...] = ()
    plugin_dirs: tuple[str, ...] = ()
    plugin_mode: str = "additive"


@dataclass(frozen=True)
class DeviceInfo:
    """One device of a port, or why a port has none here.

    Attributes:
        port: Name of the port.
        problem: Why it cannot be opened; empty where it can, and the rest holds.
        ordinal: Number of the device on its port.
        name: The device's model; empty where the port does not tell.
        target: What to compile for to run there.
        library: Version of the hipDNN library.
        runtime: Version of HIP, on NVIDIA GPUs of CUDA in its driver.
        engines: (name, plugin, version) of its engines.
        policies: Its heuristic policies, where it tells.
        plugins: Files of its plugins, where it has any and tells.
        free_bytes: Free memory, or None.
        total_bytes: All memory, or None.
    """

    port: str
    problem: str = ""
    ordinal: int = 0
    name: str = ""
    target: str = ""
    library: str = ""
    runtime: str = ""
    engines: tuple[tuple[str, str, str], ...] = ()
    policies: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    free_bytes: int | None = None
    total_bytes: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return asdict(self)


@functools.lru_cache(maxsize=8)
def open_device(options: DeviceOptions) -> _runtime.Device:
    """Return the device that sessions with these options share.

    Raises:
        DeviceError: The port's libraries are missing or too old, or there is no device.
        ModelError: The engine or a policy is unknown, or the plugins cannot be used.
    """
    _open_libraries_of_packages(options.port)
    # Whoever does not look at the library's lines need not pay for them; its errors are exceptions anyway.
    is_read = logging.getLogger("hipdnn_mlir.hipdnn").isEnabledFor(logging.INFO)
    try:
        device = _runtime.open_device(**asdict(options), log_from=_LEVELS.index(logging.INFO) if is_read else None)
    finally:
        forward_log()
    engines = ", ".join(device.engines.values())
    _log.info("port %s: %s hipDNN %s, engines %s", options.port, device.name, device.version, engines)
    return device


_LIBRARIES_OF_PACKAGES = (
    ("nvidia.cu13", "libcublasLt.so.13"),
    ("nvidia.cublas", "libcublasLt.so.12"),
    ("nvidia.cudnn", "libcudnn_graph.so.9"),
)
"""Python packages with libraries of NVIDIA that the port `cuda` opens by name."""


def _open_libraries_of_packages(port: str) -> None:
    """Open the cuDNN and cuBLAS of Python packages (`nvidia-cudnn-cu13`, `nvidia-cublas` ...), where there are any, for the port `cuda`.

    What has been opened before the port is what the port finds.

    They are often newer than the system's, and PyTorch has the same ones open. A library that does not open is left to the system's, whose
    failure the port reports.
    """
    if port != "cuda":
        return
    for name, file in _LIBRARIES_OF_PACKAGES:
        try:
            package = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            continue
        for folder in (package and package.submodule_search_locations) or ():
            library = Path(folder, "lib", file)
            if library.exists():
                try:
                    ctypes.CDLL(str(library), mode=ctypes.RTLD_LOCAL)
                except OSError as error:
                    _log.warning("%s of the Python environment cannot be opened: %s", file, error)
                break


def plan_folder(port: str, given: str | os.PathLike[str] | bool | None) -> str:
    """Return the folder of the plans of a port.

    Args:
        port: Name of the port.
        given: A folder; False for none, True for the user's own; None for that where plans are costly.

    Raises:
        ModelError: There is no cache folder to take.
    """
    if isinstance(given, str | os.PathLike):
        if not os.fspath(given):
            raise ModelError("no folder for plans", expected="a path, True or False", got="an empty text")
        return str(Path(given).expanduser().absolute())
    if given is False or (given is None and port not in _PORTS_WITH_COSTLY_PLANS):
        return ""
    folder = _runtime.default_cache_directory()
    if not folder and given:
        raise ModelError("no folder for plans", hint="set HOME or XDG_CACHE_HOME, or name a folder")
    return str(Path(folder, "plans")) if folder else ""


def list_devices(plugin_dirs: Sequence[str] = (), plugin_mode: str = "additive") -> list[DeviceInfo]:
    """Return the devices of every port; a port without any is one row that says why.

    Args:
        plugin_dirs: As of ``DeviceOptions``, for the ports that load plugins.
        plugin_mode: As of ``DeviceOptions``.

    Raises:
        ModelError: A path of plugins does not exist, or the mode does not fit; no port here loads plugins.
    """
    rows: list[DeviceInfo] = []
    for port in PORTS:
        try:
            _open_libraries_of_packages(port)
            count = _runtime.count_devices(port)
            # Plugins are for ports that load some; a mode without any is wrong for each.
            is_other = plugin_dirs and port not in _PORTS_WITH_PLUGINS
            paths, mode = ((), "additive") if is_other else (tuple(plugin_dirs), plugin_mode)
            rows += [_describe(port, ordinal, paths, mode) for ordinal in range(count)]
            if count == 0:
                rows.append(DeviceInfo(port, problem="there is no device"))
        except DeviceError as error:
            rows.append(DeviceInfo(port, problem=str(error)))
    problems = [row.problem for row in rows if row.port in _PORTS_WITH_PLUGINS]
    if plugin_dirs and all(problems):
        raise ModelError("no port here loads plugins", where="plugin_dirs", hint=problems[0])
    return rows


def _describe(port: str, ordinal: int, plugin_dirs: tuple[str, ...], plugin_mode: str) -> DeviceInfo:
    try:
        device = _runtime.open_device(port, ordinal=ordinal, plugin_dirs=plugin_dirs, plugin_mode=plugin_mode)
        free_bytes, total_bytes = device.memory or (None, None)
    except DeviceError as error:
        return DeviceInfo(port, problem=str(error), ordinal=ordinal)
    engines = tuple((name, plugin, version) for name, plugin, version, _ in device.engine_rows)
    return DeviceInfo(
        port,
        ordinal=ordinal,
        name=device.name,
        target=device.target,
        library=device.version,
        runtime=device.runtime_version,
        engines=engines,
        policies=tuple(device.policies),
        plugins=tuple(device.plugins),
        free_bytes=free_bytes,
        total_bytes=total_bytes,
    )


def forward_log() -> None:
    """Give what the runtime and the hipDNN library logged to the loggers ``hipdnn_mlir.runtime`` and ``hipdnn_mlir.hipdnn``."""
    for severity, source, line in _runtime.take_log():
        logging.getLogger(f"hipdnn_mlir.{source}").log(_LEVELS[min(severity, len(_LEVELS) - 1)], "%s", line)
