"""The hipDNN execution provider for the stock ONNX Runtime wheel.

Register the library once per process, then use its devices in any session::

    import onnxruntime as ort
    import onnxruntime_ep_hipdnn as hipdnn_ep

    ort.register_execution_provider_library("hipdnn", hipdnn_ep.get_library_path())
    devices = [device for device in ort.get_ep_devices() if device.ep_name == hipdnn_ep.get_ep_name()]
    options = ort.SessionOptions()
    options.add_provider_for_devices(devices, {})
    session = ort.InferenceSession("model.onnx", sess_options=options)
"""

from ._library import Option, get_ep_name, get_ep_names, get_library_path, get_options

__all__ = ["Option", "get_ep_name", "get_ep_names", "get_library_path", "get_options"]
