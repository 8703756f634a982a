"""The usual ways to the provider: by name, and as a device in one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ._library import get_ep_name, get_library_path

if TYPE_CHECKING:
    import onnxruntime as ort

_REGISTRATION = "hipdnn"


def register() -> None:
    """Register the library where it is not, so that sessions of this process find the provider by its name.

    Then sessions are made as with the providers that ONNX Runtime brings::

        ort_ep.register()
        session = ort.InferenceSession("model.onnx", providers=["HipDNNExecutionProvider", "CPUExecutionProvider"])

    Raises:
        RuntimeError: This ONNX Runtime does not look for registered providers by name: it is older than 1.25.
        FileNotFoundError: The installation lacks the library.
    """
    import onnxruntime as ort

    _register_library()
    if get_ep_name() not in ort.get_available_providers():
        raise RuntimeError(
            f"ONNX Runtime {ort.__version__} does not take {get_ep_name()} by name, 1.25 and later do: "
            "use ort_ep.add_to_session_options, or update the package onnxruntime"
        )


def add_to_session_options(
    session_options: ort.SessionOptions,
    options: Mapping[str, str] | None = None,
    *,
    device: Literal["cpu", "gpu"] | None = None,
) -> None:
    """Give a session the provider: register the library where it is not, pick a device, append it.

    ONNX Runtime does not tell a provider how many threads the session may use, so this does: ``threads`` is the session's
    ``intra_op_num_threads`` unless the option is given.

    Args:
        session_options: Options of the session to be; ``intra_op_num_threads`` is read here, so set it before.
        options: Provider options, see docs/onnxruntime.md.
        device: ``cpu`` or ``gpu``; None for a GPU where one is on offer.

    Raises:
        ValueError: The provider offers no such device.
        FileNotFoundError: The installation lacks the library.
    """
    _register_library()
    offers = _offers()
    wanted = [device] if device is not None else ["gpu", "cpu"]
    chosen = next((offer for kind in wanted for offer in offers if _kind(offer) == kind), None)
    if chosen is None:
        kinds = ", ".join(sorted({_kind(offer) for offer in offers})) or "none"
        raise ValueError(f"{get_ep_name()} offers no device of the kind {device!r} here: there are {kinds}")
    threads = str(session_options.intra_op_num_threads)
    session_options.add_provider_for_devices([chosen], {"threads": threads, **(options or {})})


def _register_library() -> None:
    import onnxruntime as ort

    if not _offers():
        ort.register_execution_provider_library(_REGISTRATION, get_library_path())


def _offers() -> list[Any]:
    import onnxruntime as ort

    return [offer for offer in ort.get_ep_devices() if offer.ep_name == get_ep_name()]


def _kind(offer: Any) -> str:
    """Return `cpu`, `gpu` or `npu`."""
    return str(offer.device.type.name).lower()
