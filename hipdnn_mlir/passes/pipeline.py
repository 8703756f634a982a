"""The ordered list of passes, a reason per step, and the manager that runs any pipeline of ours and MLIR's."""

import itertools
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from torch_mlir import ir
from torch_mlir.passmanager import PassManager

from hipdnn_mlir_runtime.atomic_file import write_text
from hipdnn_mlir_runtime.errors import HipdnnMlirError, PassError, meant
from hipdnn_mlir_runtime.precision import TF32, UNCHANGED

from ..ir.assembly import module_text
from ..ir.module_pass import PASSES
from ..targets.table import target_name
from . import (  # noqa: F401 - importing a pass registers it
    absorb_transposes,
    assign_layout,
    canonicalize_torch,
    convert_precision,
    finalize_memrefs,
    fold_batch_norm,
    fuse_activations,
    fuse_attention,
    fuse_decode_attention,
    fuse_group_norm,
    fuse_integer_sums,
    fuse_rms_norm,
    gather_rows,
    graph_to_executable,
    join_groups,
    join_slices,
    launch_to_kernel,
    legalize,
    merge_convolutions,
    merge_matmuls,
    offload,
    order_weights,
    outline_constants,
    outline_launches,
    pad_channels,
    refine_shapes,
    rename_unconverted_ops,
    reuse_operands,
    share_operators,
    sign_integers,
    space_to_depth,
    split_bias,
    split_inner,
    split_norms,
    split_rotary,
    write_in_place,
    write_out_attention,
    write_out_block_matmul,
    write_out_caches,
    write_out_experts,
    write_out_quantized,
    write_out_recurrence,
)

logger = logging.getLogger(__name__)

BUFFERIZE = (
    "one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},canonicalize,cse,"
    "buffer-results-to-out-params{add-result-attr=true hoist-static-allocs=true hoist-dynamic-allocs=true modify-public-functions=true},"
    "drop-equivalent-buffer-results,canonicalize,cse"
)


@dataclass(frozen=True)
class Step:
    """One step: a name for dumps and messages, a textual pipeline over builtin.module, and why it is there."""

    name: str
    passes: str
    why: str


FX_STEPS = (Step("simplify-torch", "func.func(canonicalize,cse)", "PyTorch's importer spells numbers out"),)
"""For what torch.export gives, in the place of the first of TORCH_STEPS."""
TORCH_STEPS = (
    Step(
        "onnx-to-torch",
        "inline,func.func(convert-torch-onnx-to-torch),func.func(canonicalize,cse)",
        "ONNX semantics become torch ops",
    ),
    Step("refine-shapes", "hipdnn-refine-shapes", "torch-mlir leaves `?` on ops it made itself"),
    Step("canonicalize-torch", "hipdnn-canonicalize-torch,func.func(canonicalize,cse)", "one form per meaning"),
    Step(
        "fuse-decode-attention",
        "hipdnn-share-operators,hipdnn-fuse-decode-attention",
        "a GPU's launch costs more than one token's rotation or new row of a cache",
    ),
    Step(
        "write-out-caches",
        "hipdnn-write-out-caches",
        "attention over a cache that no engine takes is attention under a mask",
    ),
    Step(
        "write-out-experts",
        "hipdnn-write-out-experts",
        "targets without a kernel for chosen experts multiply gathered weights",
    ),
    Step(
        "write-out-recurrence",
        "hipdnn-write-out-recurrence",
        "targets without a kernel for weights of bytes have one for those of floats",
    ),
    Step("share-operators", "hipdnn-share-operators", "decoders compute the same positions and masks in every layer"),
    Step("join-slices", "hipdnn-join-slices", "convolutions of parts of the channels have a kernel each"),
    Step("fold-batch-norm", "hipdnn-fold-batch-norm", "constant statistics belong into the weights"),
    Step("merge-convolutions", "hipdnn-merge-convolutions", "branches of a block that are added are one convolution"),
    Step("fuse-activations", "hipdnn-fuse-activations", "activations written out in arithmetic are one operation"),
    Step("fuse-group-norm", "hipdnn-fuse-group-norm", "group norm written out is one region"),
    Step("split-norms", "hipdnn-split-norms", "a row of a norm has one block of a GPU"),
    Step(
        "split-rotary",
        "hipdnn-split-rotary,hipdnn-share-operators",
        "rotary embedding without a rotated copy, its tables cut once",
    ),
    Step("fuse-rms-norm", "hipdnn-fuse-rms-norm", "RMS norm written out is one operation where an engine has it"),
    Step("fuse-attention", "hipdnn-fuse-attention", "attention written out is one operation where an engine has it"),
    Step(
        "fuse-grown-caches",
        "hipdnn-share-operators,hipdnn-fuse-decode-attention,hipdnn-write-out-caches",
        "caches that grow in the model are written out there, and are seen as such behind fuse-attention",
    ),
    Step("convert-precision", "hipdnn-convert-precision", "the 16-bit type asked for, where it costs little accuracy"),
    Step("fuse-narrow-attention", "hipdnn-fuse-attention", "some engines have attention in 16-bit types only"),
    Step("write-out-attention", "hipdnn-write-out-attention", "attention of a model that no engine takes is its parts"),
    Step(
        "write-out-block-matmul",
        "hipdnn-write-out-block-matmul",
        "products with block-scaled weights that no engine takes are their parts",
    ),
    Step("sign-integers", "hipdnn-sign-integers", "some engines multiply signed bytes alone"),
    Step("fuse-integer-sums", "hipdnn-fuse-integer-sums", "a residual block of bytes is rounded once"),
    Step(
        "write-out-quantized",
        "hipdnn-write-out-quantized",
        "convolutions and products of integers that no engine takes are those of floats",
    ),
    Step("merge-matmuls", "hipdnn-merge-matmuls", "one kernel for matmuls of one value with several weights"),
    Step("gather-rows", "hipdnn-gather-rows", "a GPU has a copy for each part of a shift"),
    Step(
        "space-to-depth",
        "hipdnn-space-to-depth",
        "matrix units of some targets take channels by eights, and images have three",
    ),
    Step("join-groups", "hipdnn-join-groups", "groups of few channels have no kernel of their own"),
    Step("pad-channels", "hipdnn-pad-channels", "matrix units of some targets take channels by eights"),
    Step(
        "order-weights",
        "hipdnn-order-weights",
        "libraries of some targets read weights in other orders than models store them",
    ),
    Step("split-inner", "hipdnn-split-inner", "few wide blocks of a matmul of few rows do not fill a GPU"),
    Step("split-bias", "hipdnn-split-bias", "some libraries add a bias only together with an activation"),
    Step(
        "outline-constants",
        "hipdnn-outline-constants,func.func(canonicalize,cse)",
        "weights are computed once, outside the program",
    ),
)
OFFLOAD_STEPS = (
    Step("offload", "hipdnn-offload,hipdnn-outline-launches", "regions that one engine takes, kernels for the rest"),
    Step("assign-layout", "hipdnn-assign-layout,func.func(cse)", "channels-last where engines want it"),
    Step("backend-legalize", "hipdnn-backend-legalize", "destinations for regions, tensor ops for data movement"),
    Step("bufferize", BUFFERIZE, "values become buffers, results the caller's"),
    Step("absorb-transposes", "hipdnn-absorb-transposes,canonicalize", "transposes are strides"),
    Step("write-in-place", "hipdnn-write-in-place,canonicalize", "concatenations and results without copies"),
    Step("finalize-memrefs", "hipdnn-finalize-memrefs,cse", "remaining data movement becomes regions"),
    Step("launch-to-kernel", "hipdnn-launch-to-kernel", "kernels with the strides buffers have"),
    Step("graph-to-executable", "hipdnn-graph-to-executable", "descriptors with the strides buffers have"),
    Step("reuse-operands", "hipdnn-reuse-operands", "kernels write where they read, in memory that caches still have"),
)
_NESTED = re.compile(r"([\w.]+)\((.*)\)", re.DOTALL)
When = Literal["Before", "After"]
Look = Callable[[When, str, ir.Operation], None]
"""Is shown the module before or after a pass, which is given as in a textual pipeline."""
STEPS = TORCH_STEPS + OFFLOAD_STEPS
PIPELINES = {"hipdnn-offload-pipeline": STEPS[1:], "hipdnn-onnx-pipeline": STEPS}


@cache
def split_top_level(text: str) -> Sequence[str]:
    """Split a textual pipeline at commas outside parentheses and braces."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character in "({") - (character in ")}")
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return [*parts, current.strip()] if current.strip() else parts


def single_passes(pipeline: str) -> list[str]:
    """The passes of a textual pipeline one by one: `func.func(a,b),c` -> `func.func(a)`, `func.func(b)`, `c`."""
    elements = []
    for element in split_top_level(pipeline):
        nested = _NESTED.fullmatch(element)
        inner = single_passes(nested[2]) if nested else []
        elements += [f"{nested[1]}({name})" for name in inner] if nested else [element]
    return elements


def pass_name(element: str) -> str:
    """The name of a single pass, without options and what it is nested in: `func.func(a{b=c})` -> `a`."""
    nested = _NESTED.fullmatch(element)
    return pass_name(nested[2]) if nested else parse_element(element)[0]


@cache
def parse_element(element: str) -> tuple[str, Mapping[str, str]]:
    """Name and options of one pipeline element: `hipdnn-offload{target=host}` -> ("hipdnn-offload", {"target": "host"})."""
    match = re.fullmatch(r"([\w.-]+)\s*(?:\{(.*)\})?", element.strip(), re.DOTALL)
    if match is None:
        return element, {}
    pairs = (item.partition("=") for item in (match.group(2) or "").split())
    return match.group(1), {key: value if equals else "true" for key, equals, value in pairs}


def _python_pass(name: str, options: Mapping[str, str]) -> Callable[[ir.Operation, object], None]:
    known = PASSES[name]
    unknown = sorted(set(options) - set(known.options))
    if unknown:
        valid = ", ".join(known.options) or "none"
        raise HipdnnMlirError(f"pass {name} has no option {unknown[0]!r}", expected=f"one of: {valid}")

    def run(operation: ir.Operation, _: object) -> None:
        with operation.operation.location:
            known.run(operation.operation, **options)

    return run


def build(pipeline: str, defaults: dict[str, str] | None = None, look: Look | None = None) -> PassManager:
    """A pass manager over builtin.module for a list of passes, ours and MLIR's mixed.

    Args:
        pipeline: elements separated by commas, without the enclosing `builtin.module(...)`.
        defaults: values for options of our passes that take them and do not name them.
        look: is shown the module before and after every single pass.

    Raises:
        HipdnnMlirError: an option of our passes that does not exist, or a pass that MLIR does not know.
    """
    manager = PassManager("builtin.module")
    for element in single_passes(pipeline) if look else split_top_level(pipeline):
        if look:
            manager.add(_looking(look, "Before", element), name="print")
        _add(manager, element, defaults or {})
        if look:
            manager.add(_looking(look, "After", element), name="print")
    return manager


def _add(manager: PassManager, element: str, defaults: Mapping[str, str]) -> None:
    name, options = parse_element(element)
    if name in PASSES:
        known = {key: value for key, value in defaults.items() if key in PASSES[name].options}
        manager.add(_python_pass(name, {**known, **options}), name=name, argument=name)
        return
    try:
        manager.add(element)
    except ValueError as error:
        hint = f"{meant(name, [*PASSES, *PIPELINES])} see hipdnn-opt --help for the list".lstrip()
        raise HipdnnMlirError(f"unknown pass or option in {element!r}", hint=hint) from error


def _looking(look: Look, when: When, element: str) -> Callable[[ir.Operation, object], None]:
    def run(operation: ir.Operation, _: object) -> None:
        look(when, element, operation.operation)

    return run


class Runner:
    """Runs steps one after the other on a module, dumping IR and naming the step that fails."""

    def __init__(
        self,
        *,
        target: str = "host",
        precision: str = UNCHANGED,
        refused: Iterable[str] = (),
        dump_ir: Path | None = None,
    ) -> None:
        self._defaults = {
            "target": target_name(target, precision),
            "precision": precision,
            "refused": ",".join(sorted(refused)),
        }
        self._dump_ir = dump_ir
        self._numbers = itertools.count(1)
        self.elapsed_ms: dict[str, float] = {}

    def sibling(self) -> "Runner":
        """A runner with the same options that dumps nothing."""
        made = Runner()
        made._defaults = dict(self._defaults)
        return made

    @property
    def allows_tf32(self) -> bool:
        """Whether matmuls and convolutions of f32 may round their operands."""
        return self._defaults["precision"] == TF32

    def run(self, module: ir.Operation, steps: Sequence[Step]) -> None:
        """Run the steps.

        Raises:
            PassError: a pass failed or produced invalid IR; names the step and those before it.
        """
        for step in steps:
            start = time.perf_counter()
            manager = build(step.passes, self._defaults)
            manager.enable_verifier(
                False
            )  # behind every pass it takes a tenth of a compilation; behind every step is enough
            try:
                manager.run(module)
                module.verify()
            except PassError as error:
                error.pass_name = error.pass_name or step.name
                error.earlier = error.earlier or tuple(self.elapsed_ms)
                raise
            except HipdnnMlirError:
                raise
            except ir.MLIRError as error:
                first = str(error).splitlines()
                raise PassError(
                    _diagnosis(first), pass_name=step.name, earlier=list(self.elapsed_ms), detail=str(error)
                ) from error
            except Exception as error:
                raise PassError(
                    f"{type(error).__name__}: {error}",
                    pass_name=step.name,
                    earlier=list(self.elapsed_ms),
                    detail=repr(error),
                ) from error
            self.elapsed_ms[step.name] = (time.perf_counter() - start) * 1e3
            self._dump(module, step)
            added = [known.name for known in PASSES.values() if known.after == step.name]
            self.run(module, [Step(name, name, "added by an extension") for name in added])

    def _dump(self, module: ir.Operation, step: Step) -> None:
        if self._dump_ir is None:
            return
        self._dump_ir.mkdir(parents=True, exist_ok=True)
        path = self._dump_ir / f"{next(self._numbers):02d}-{step.name}.mlir"
        write_text(path, module_text(module, large_elements_limit=16))
        logger.info("wrote %s", path)


def _diagnosis(lines: list[str]) -> str:
    """The first error line of MLIR's report, without its prefix."""
    for line in lines:
        if line.startswith("error: "):
            return line.removeprefix("error: ")
    return lines[0] if lines else "unknown failure"
