"""A `gpu.module` -> LLVM IR -> PTX text or an AMDGPU object."""

import re
from functools import lru_cache
from types import ModuleType
from typing import Any

from torch_mlir import ir
from torch_mlir.passmanager import PassManager

from hipdnn_mlir_runtime.errors import MissingToolError, PassError

from .arch import Architecture
from .builder import APPROXIMATE, AWAITING
from .float_literals import respelled
from .link import find_linker

_APPROXIMATIONS = {
    "nvidia": {
        "exp2": "nvvm.ex2.approx.ftz.f", "log2": "nvvm.lg2.approx.ftz.f", "reciprocal": "nvvm.rcp.approx.ftz.f",
        "rsqrt": "nvvm.rsqrt.approx.ftz.f",
    },
    "amd": {
        "exp2": "amdgcn.exp2.f32", "log2": "amdgcn.log.f32", "reciprocal": "amdgcn.rcp.f32", "rsqrt": "amdgcn.rsq.f32",
    },
}  # fmt: skip
"""The GPU's one instruction for `KernelBuilder.approximate`, by vendor."""
WAVES = "hipdnn.waves"
"""Attribute of a kernel's function: the fewest and the most waves that a SIMD of AMD's has, "1,1" say."""
_CODE_OBJECT_VERSION = 500
"""Of the code object that AMD's driver loads; 5 is what ROCm 5.7 to 7 read."""


def compile_module(module: Any, architecture: Architecture) -> str | bytes:
    """Compile the one `gpu.module` of a module.

    Raises:
        MissingToolError: llvmlite is not installed.
        PassError: MLIR or LLVM refused the code, or it calls a function that nothing defines.
    """
    machine, optimized = _optimized(_llvm_text(module, architecture), architecture)
    return machine.emit_object(optimized) if architecture.code == "object" else str(machine.emit_assembly(optimized))


def assembly(module: Any, architecture: Architecture) -> str:
    """Return the instructions that `compile_module` makes of a module, as text of LLVM's assembler or PTX; raises as that does."""
    machine, optimized = _optimized(_llvm_text(module, architecture), architecture)
    return str(machine.emit_assembly(optimized))


def _llvm_text(module: Any, architecture: Architecture) -> str:
    conversion = (
        "convert-gpu-to-nvvm"
        if architecture.vendor == "nvidia"
        else f"convert-gpu-to-rocdl{{chipset={architecture.name}}}"
    )
    pipeline = f"builtin.module(gpu.module(canonicalize,cse,convert-scf-to-cf,{conversion},reconcile-unrealized-casts))"
    from torch_mlir.dialects import llvm  # importing it takes long, and only GPUs need it

    with module.context, ir.Location.unknown():
        _choose_approximations(module, architecture.vendor)
        if architecture.waits_in_kernels:
            _overlap_launches(module)
        try:
            PassManager.parse(pipeline).run(module.operation)
        except ir.MLIRError as error:
            raise PassError("MLIR cannot lower a kernel", pass_name=conversion, detail=str(error)) from error
        plain = ir.Module.create()
        for operation in list(module.body.operations[0].operation.regions[0].blocks[0].operations):
            if WAVES in operation.attributes:
                pair = [ir.StringAttr.get("amdgpu-waves-per-eu"), operation.attributes[WAVES]]
                operation.attributes["passthrough"] = ir.ArrayAttr.get([ir.ArrayAttr.get(pair)])
            plain.body.append(operation)
        return respelled(str(llvm.translate_module_to_llvmir(plain.operation)))


def _choose_approximations(module: Any, vendor: str) -> None:
    known = {f"{APPROXIMATE}{name}": f"llvm.{intrinsic}" for name, intrinsic in _APPROXIMATIONS[vendor].items()}

    def choose(op: Any) -> Any:
        if op.name == "llvm.call_intrinsic" and (name := op.attributes["intrin"].value) in known:
            op.attributes["intrin"] = ir.StringAttr.get(known[name])
        return ir.WalkResult.ADVANCE

    module.operation.walk(choose)


def _overlap_launches(module: Any) -> None:
    """Let the next kernel come, and wait for the one in front, so that the port may launch this one while that runs.

    The kernel waits before anything else, or where it says so. Several may be waiting: each reads ahead what it may.
    """
    kernel = list(module.body.operations[0].operation.regions[0].blocks[0].operations)[-1].operation
    operations = list(kernel.regions[0].blocks[0].operations)
    said = [
        op
        for op in operations
        if op.operation.name == "llvm.call_intrinsic" and op.attributes["intrin"].value == AWAITING
    ]
    for name, place in (("launch.dependents", operations[0]), ("wait", said[0] if said else operations[0])):
        with ir.InsertionPoint(place):
            ir.Operation.create(
                "llvm.call_intrinsic",
                attributes={
                    "intrin": ir.StringAttr.get(f"llvm.nvvm.griddepcontrol.{name}"),
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
                    "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
                },
            )
    for op in said:
        op.operation.erase()


def generator(vendor: str) -> ModuleType:
    """LLVM with its GPU backends; torch-mlir's has none.

    Raises:
        MissingToolError: llvmlite is not installed.
    """
    try:
        return _llvm()
    except ImportError as error:
        linker = " ziglang" if vendor == "amd" and find_linker() is None else ""
        message = "code for GPUs is compiled with llvmlite, which is not installed"
        raise MissingToolError(message, hint=f"pip install llvmlite{linker}") from error


@lru_cache(maxsize=1)
def _llvm() -> ModuleType:
    from llvmlite import binding  # type: ignore[import-untyped]

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding  # type: ignore[no-any-return]


def _optimized(text: str, architecture: Architecture) -> tuple[Any, Any]:
    """LLVM's target machine, and its module of some LLVM IR after all passes."""
    binding = generator(architecture.vendor)
    if architecture.vendor == "amd":
        text = _with_code_object_version(text)
    try:
        module = binding.parse_assembly(text)
        target = binding.Target.from_triple(architecture.triple)
        machine = target.create_target_machine(cpu=architecture.name, opt=3)
        module.triple, module.data_layout = architecture.triple, str(machine.target_data)
        passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
        passes.getModulePassManager().run(module, passes)
    except RuntimeError as error:
        raise PassError("LLVM refuses a kernel", pass_name="llvm", detail=str(error)) from error
    missing = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    if missing:
        raise PassError(f"a kernel calls {', '.join(missing)}, which are undefined", pass_name="llvm")
    return machine, module


def _with_code_object_version(text: str) -> str:
    """The module with the flag that says which code object it becomes."""
    flags = re.search(r"^!llvm\.module\.flags = !\{(.*)\}$", text, re.MULTILINE)
    number = 1 + max((int(n) for n in re.findall(r"^!(\d+) =", text, re.MULTILINE)), default=-1)
    entry = f'!{number} = !{{i32 1, !"amdhsa_code_object_version", i32 {_CODE_OBJECT_VERSION}}}\n'
    listed = f"!llvm.module.flags = !{{{flags[1] + ', ' if flags else ''}!{number}}}"
    text = text.replace(flags[0], listed) if flags else f"{text}\n{listed}\n"
    return f"{text}\n{entry}"
