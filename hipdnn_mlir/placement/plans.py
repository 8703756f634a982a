"""Whether the target's library takes what the engine tables claim: the last word is a plan's."""

import json
import logging
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from hipdnn_mlir_runtime import _runtime
from hipdnn_mlir_runtime.errors import DeviceError, PlanRefusedError, ProgramError, RefusedPlan
from hipdnn_mlir_runtime.session.devices import open_device
from hipdnn_mlir_runtime.session.options import device_options
from hipdnn_mlir_runtime.session.recovery import recovered

from ..program.schema import Execute, ProgramModel

if TYPE_CHECKING:
    from ..compiler.program import Lowered, Program

logger = logging.getLogger(__name__)

RULE = "plan"
REMEMBERED_PLANS = 4096


def lowered_here(make: "Callable[[Sequence[RefusedPlan]], Lowered]") -> "Lowered":
    """A model compiled up to its weights in a form of which the target's library takes every graph, where it is on this machine.

    Args:
        make: compiles it without the graphs that it is given.

    Raises:
        PlanRefusedError: there is no such form.
        DeviceError: a plan could not be tried, for want of memory or because the device fails.
        HipdnnMlirError: whatever `make` raises.
    """
    return recovered(make, _checked)


def compiled_here(make: "Callable[[Sequence[RefusedPlan], Program | None], Program]") -> "Program":
    """The same of a program with one for each combination of buckets.

    Args:
        make: compiles it without the graphs that it is given, with what has been compiled before.

    Raises:
        HipdnnMlirError: as for `lowered_here`.
    """
    made: list[Program] = []

    def again(refused: Sequence[RefusedPlan]) -> "Program":
        made.append(make(refused, made[-1] if made else None))
        return made[-1]

    def checked(program: "Program") -> "Program":
        refused = [plan for made in program.model.specializations for plan in refused_plans(made.program)]
        if refused:
            raise PlanRefusedError(refused)
        return program

    return recovered(again, checked)


def _checked(lowered: "Lowered") -> "Lowered":
    refused = refused_plans(lowered.sample)
    if refused:
        raise PlanRefusedError(refused)
    return lowered


def refused_plans(model: ProgramModel) -> list[RefusedPlan]:
    """Build every plan of a program, without its constants; the steps whose plan the library refuses.

    Nothing is refused where the target's library is not on this machine, see `why_not_asked`.

    Raises:
        DeviceError: a plan could not be tried.
    """
    executes = [step for step in model.steps if isinstance(step, Execute)]
    texts = [json.dumps(found) for found in model.to_dict()["executables"]]
    found = []
    for step in executes:
        reason = _refusal(model.target, texts[step.executable], model.tf32)
        if reason:
            executable = model.executables[step.executable]
            found.append(RefusedPlan(executable.name, executable.summary, step.name, reason))
    return found


def why_not_asked(model: ProgramModel) -> str:
    """Why no library can be asked for the plans of a program on this machine; empty where one can."""
    return _opened(model.target, model.tf32)[1]


@cache
def _opened(target: str, tf32: bool) -> tuple[_runtime.Device | None, str]:
    """The device that runs a target's programs, or why there is none."""
    try:
        port = _runtime.port_for_target(target)
        # Plans are kept where sessions look for them.
        device = open_device(device_options({}, port, is_tf32=tf32))
        # What another architecture's library says of a graph does not hold.
        reason = "" if device.runs(target) else f"the device here is for target '{device.target}'"
    except (DeviceError, ProgramError) as error:
        reason = str(error)
    if reason:
        logger.info("plans for %s were not tried: %s", target, reason)
        return None, reason
    return device, ""


def _device(target: str, tf32: bool) -> _runtime.Device | None:
    return _opened(target, tf32)[0]


@lru_cache(maxsize=REMEMBERED_PLANS)
def _refusal(target: str, executable: str, tf32: bool) -> str:
    """The library's reason against an executable; empty where it takes it."""
    device = _device(target, tf32)
    if device is None:
        return ""
    try:
        device.build_plan(executable)
    except PlanRefusedError as error:
        return error.refusals[0].reason
    return ""
