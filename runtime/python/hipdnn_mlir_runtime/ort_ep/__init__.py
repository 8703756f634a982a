"""The hipDNN execution provider for the stock ONNX Runtime wheel.

In one call::

    import onnxruntime as ort
    from hipdnn_mlir_runtime import ort_ep

    options = ort.SessionOptions()
    ort_ep.add_to_session_options(options)
    session = ort.InferenceSession("model.onnx", sess_options=options)

or by name, from ONNX Runtime 1.25 on::

    ort_ep.register()
    session = ort.InferenceSession("model.onnx", providers=["HipDNNExecutionProvider", "CPUExecutionProvider"])

or by ONNX Runtime's own functions, with ``get_library_path`` and ``get_ep_name``: see docs/onnxruntime.md.
"""

from ._library import Option, get_ep_name, get_ep_names, get_library_path, get_options
from ._session import add_to_session_options, register

__all__ = [
    "Option",
    "add_to_session_options",
    "get_ep_name",
    "get_ep_names",
    "get_library_path",
    "get_options",
    "register",
]
