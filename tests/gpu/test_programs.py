"""Whole programs for a GPU target whose steps are all generated kernels, run in the emulator: onnx's node cases of many operators."""

from __future__ import annotations

import importlib
import json
import warnings
from typing import Any

import numpy as np
import pytest

from gpu.emulator import Emulator
from hipdnn_mlir.dtypes import BY_NAME
from hipdnn_mlir.gpu import assemble
from runtime_programs import Array

CASES = (
    "add_bcast", "and_bcast4v3d", "argmax_keepdims_example", "argmin_negative_axis_keepdims_random_select_last_index",
    "averagepool_2d_pads", "averagepool_2d_strides", "batchnorm_example", "bitshift_right_uint16",
    "clip_example", "concat_3d_axis_1", "depthtospace_crd_mode_example", "div_uint8", "erf",
    "expand_dim_changed", "gather_elements_1", "gathernd_example_int32_batch_dim1", "gelu_tanh_2", "globalaveragepool",
    "globalmaxpool", "greater_equal_bcast", "group_normalization_example", "hardswish", "instancenorm_example", "isnan",
    "layer_normalization_4d_axis2", "log", "logsoftmax_axis_1", "lrn", "max_int16", "maxpool_2d_same_lower", "maxpool_3d_default",
    "mean_example", "mod_mixed_sign_int32", "mvn", "nllloss_NCd1_weight_ii", "not_4d", "pow_bcast_array", "quantizelinear_axis",
    "reduce_l2_keep_dims_random", "reduce_log_sum_exp_keepdims_random", "reduce_max_bool_inputs",
    "reduce_prod_negative_axes_keepdims_random", "resize_downsample_sizes_cubic", "reversesequence_batch",
    "rms_normalization_4d_axis2", "rotary_embedding", "sce_mean_weight_ii_4d", "selu", "sinh", "softmax_axis_0", "softplus",
    "spacetodepth", "split_equal_parts_1d_opset18", "swish", "tan", "tile_precomputed", "top_k_smallest",
    "transpose_all_permutations_4", "where_long_example", "xor_bcast4v2d",
)  # fmt: skip


def node_cases() -> dict[str, Any]:
    """The onnx package's node cases by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        return {case.name.removeprefix("test_"): case for case in collect_testcases(None)}


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    return node_cases()


def run(document: dict[str, Any], tensors: dict[str, Any], feeds: dict[str, Array], modules: list[Any]) -> list[Array]:
    """Run a program's steps; a kernel's image is the number of its MLIR module."""
    memory = [np.full(buffer["bytes"], 0xCD, np.uint8) for buffer in document["buffers"]]
    for port in document["inputs"]:
        memory[port["buffer"]] = np.ascontiguousarray(feeds[port["name"]]).reshape(-1).view(np.uint8).copy()
    for constant in document["constants"]:
        memory[constant["buffer"]] = np.ascontiguousarray(tensors[constant["tensor"]]).reshape(-1).view(np.uint8).copy()
    for step in document["steps"]:
        if step["kind"] == "copy":
            source, target, size = step["src"], step["dst"], step["bytes"]
            taken = memory[source["buffer"]][source["offset"] : source["offset"] + size]
            memory[target["buffer"]][target["offset"] : target["offset"] + size] = taken
            continue
        assert step["kind"] == "launch", "a step of a library"
        code = document["kernels"][step["kernel"]]["code"]
        places = [memory[place["buffer"]][place["offset"] :] for place in step["operands"]]
        emulator = Emulator([places[a] for a in code["arguments"]], code["grid"][0], code["block"][0], 32)
        if code["grid"][0]:
            emulator.run(modules[int(code["image"])])
    return [memory[o["buffer"]].view(BY_NAME[o["dtype"]].numpy).reshape(o["dims"]) for o in document["outputs"]]


@pytest.mark.parametrize("name", CASES)
def test_program_equals_the_expected_outputs(name: str, cases: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    modules: list[Any] = []

    def keep(module: Any, _: Any) -> str:
        modules.append(module)
        return str(len(modules) - 1)

    monkeypatch.setattr(assemble, "compile_module", keep)
    case = cases[name]
    compiler = importlib.import_module("hipdnn_mlir.compile")  # the package's name `compile` is the function
    program = compiler.compile(case.model, target="sm_90")
    document = json.loads(program.text)
    inputs, outputs = case.data_sets[0]
    feeds = {port.name: np.asarray(value) for port, value in zip(case.model.graph.input, inputs, strict=True)}
    got = run(document, dict(program.tensors), feeds, modules)
    for result, want in zip(got, outputs, strict=True):
        if np.asarray(want).dtype.kind == "f":
            np.testing.assert_allclose(result, want, rtol=2e-3 if result.dtype == np.float16 else 2e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(result, want)
