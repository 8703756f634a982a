"""Where the provider's library lies, and what options it takes."""

from dataclasses import dataclass
from pathlib import Path

import hipdnn_mlir_runtime

from ..options import options_of

_EP_NAME = "HipDNNExecutionProvider"


@dataclass(frozen=True)
class Option:
    """One provider option.

    Attributes:
        key: As in the dict given to ONNX Runtime.
        type: ``flag``, ``integer``, ``text``, ``choice``, ``path``, ``folder``, ``list``, ``paths``, ``map`` or ``sizes``.
        default: Value where the option is not given.
        values: Valid values, where there is a list of them.
        help: What it does.
    """

    key: str
    type: str
    default: str
    values: tuple[str, ...]
    help: str


def get_library_path() -> str:
    """Return the absolute path of the library that ONNX Runtime registers.

    Raises:
        FileNotFoundError: The installation lacks the library.
    """
    for folder in hipdnn_mlir_runtime.__path__:
        path = Path(folder, "lib", "libhipdnn_ep.so")
        if path.is_file():
            return str(path.absolute())
    raise FileNotFoundError("libhipdnn_ep.so is not installed: reinstall the package hipdnn-mlir-runtime")


def get_ep_name() -> str:
    """Return the provider's name, as in ``OrtEpDevice.ep_name`` and ``InferenceSession(providers=...)``."""
    return _EP_NAME


def get_ep_names() -> list[str]:
    """Return the names of all providers in the library: one."""
    return [_EP_NAME]


def get_options() -> list[Option]:
    """Return the provider's options, from the table that the library is built with."""
    rows = options_of("provider").values()
    return [Option(row.name, row.type, row.default_text, row.texts, row.help) for row in rows]
