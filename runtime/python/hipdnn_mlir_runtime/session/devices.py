"""Devices: opening them with their settings, listing them, and what the libraries behind them log."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import _runtime
from ..errors import DeviceError, ModelError
from ..options import Settings, checked

_log = logging.getLogger("hipdnn_mlir.devices")

PORTS = ("host", "hip", "cuda")
"""Names of the ports, as the runtime has them."""

_PORTS_WITH_PLUGINS = ("hip",)
"""Ports whose libraries load engines from plugins."""

_LEVELS = (logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
"""Python's levels by hipDNN's severity."""


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
def open_device(options: Settings) -> _runtime.Device:
    """Return the device that sessions with these options share, and with it the plans of equal graphs.

    Args:
        options: What ``device_options`` returns.

    Raises:
        DeviceError: The port's libraries are missing or too old, or there is no device.
        ModelError: The engine or a policy is unknown, or the plugins cannot be used.
    """
    _open_libraries_of_packages(options["port"])
    # Whoever does not look at the library's lines need not pay for them; its errors are exceptions anyway.
    is_read = logging.getLogger("hipdnn_mlir.hipdnn").isEnabledFor(logging.INFO)
    try:
        device = _runtime.open_device(options, log_from=_LEVELS.index(logging.INFO) if is_read else None)
    finally:
        forward_log()
    engines = ", ".join(device.engines.values())
    _log.info("port %s: %s hipDNN %s, engines %s", device.port, device.name, device.version, engines)
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


def list_devices(plugin_dirs: Sequence[str | os.PathLike[str]] = (), plugin_mode: str = "additive") -> list[DeviceInfo]:
    """Return the devices of every port; a port without any is one row that says why.

    Args:
        plugin_dirs: As of a ``Session``, for the ports that load plugins.
        plugin_mode: As of a ``Session``.

    Raises:
        ModelError: A path of plugins does not exist, or the mode does not fit; no port here loads plugins.
    """
    given = checked("session", {"plugin_dirs": plugin_dirs, "plugin_mode": plugin_mode})
    rows: list[DeviceInfo] = []
    for port in PORTS:
        try:
            _open_libraries_of_packages(port)
            count = _runtime.count_devices(port)
            # Plugins are for ports that load some; a mode without any is wrong for each.
            is_other = plugin_dirs and port not in _PORTS_WITH_PLUGINS
            plugins = {} if is_other else {name: given[name] for name in ("plugin_dirs", "plugin_mode")}
            rows += [_describe(port, ordinal, plugins) for ordinal in range(count)]
            if count == 0:
                rows.append(DeviceInfo(port, problem="there is no device"))
        except DeviceError as error:
            rows.append(DeviceInfo(port, problem=str(error)))
    problems = [row.problem for row in rows if row.port in _PORTS_WITH_PLUGINS]
    if plugin_dirs and all(problems):
        raise ModelError("no port here loads plugins", where="plugin_dirs", hint=problems[0])
    return rows


def _describe(port: str, ordinal: int, plugins: Mapping[str, Any]) -> DeviceInfo:
    try:
        device = _runtime.open_device({"port": port, "device": ordinal, "compare_plans": False, **plugins})
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
