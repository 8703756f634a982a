"""A compiled model on a machine without this package: ONNX Runtime and three libraries in a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

from hipdnn_mlir_runtime import ort_ep

from .sessions import reference, session_options
from .small_models import convolution, inputs_for

USE = """
import sys
import numpy as np
import onnxruntime as ort

folder = sys.argv[1]
ort.register_execution_provider_library("hipdnn", folder + "/libhipdnn_ep.so")
device = next(d for d in ort.get_ep_devices() if d.ep_name == "HipDNNExecutionProvider")
options = ort.SessionOptions()
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
options.add_provider_for_devices([device], {})
session = ort.InferenceSession(folder + "/model.onnx", sess_options=options)
session.disable_fallback()
np.save(folder + "/y.npy", session.run(None, {"x": np.load(folder + "/x.npy")})[0])
mapped = open("/proc/self/maps").read()
assert folder + "/libhipdnn_host.so" in mapped
assert "torch_mlir" not in mapped and "/hipdnn_mlir/" not in mapped
"""


def test_three_libraries_and_the_model_are_enough(tmp_path) -> None:
    model = convolution()
    x = inputs_for(model)
    settings = session_options(tmp_path / "cache")
    compiler = ort.ModelCompiler(settings, model.SerializeToString(), embed_compiled_data_into_model=False)
    folder = tmp_path / "deployed"
    folder.mkdir()
    compiler.compile_to_file(str(folder / "model.onnx"))
    assert [node.op_type for node in onnx.load(folder / "model.onnx").graph.node] == ["EPContext"]

    library = Path(ort_ep.get_library_path())
    for name in (library.name, "libhipdnn_host.so", "libhipdnn_dnnl.so"):
        shutil.copy(library.with_name(name), folder)
    np.save(folder / "x.npy", x["x"])
    packages = tmp_path / "packages"  # an environment in which this package is not installed
    packages.mkdir()
    for found in {Path(ort.__file__).parent, Path(np.__file__).parent}:
        (packages / found.name).symlink_to(found)
        for libraries in found.parent.glob(f"{found.name}.libs"):
            (packages / libraries.name).symlink_to(libraries)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(packages)}
    command = [sys._base_executable, "-S", "-c", USE, str(folder)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(folder / "y.npy"), reference(model, x)[0], rtol=1e-5, atol=1e-5)
