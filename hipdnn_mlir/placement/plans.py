"""Whether the target's library takes what the engine tables claim: the last word is a plan's."""

import json
import logging
from functools import cache, lru_cache

from .. import _runtime
from ..errors import DeviceError, ProgramError, Reject
from ..program.schema import Execute, ProgramModel

logger = logging.getLogger(__name__)

RULE = "plan"
REMEMBERED_PLANS = 4096


def refused_plans(model: ProgramModel) -> list[Reject]:
    """Build every plan of a program, without its constants; the steps whose plan the library refuses, by the nodes in them.

    Nothing is refused where the target's library is not on this machine.
    """
    executes = [step for step in model.steps if isinstance(step, Execute)]
    texts = [json.dumps(found) for found in model.to_dict()["executables"]]
    refusals = ((step, _refusal(model.target, texts[step.executable], model.tf32)) for step in executes)
    return [Reject(model.executables[step.executable].summary, RULE, why, step.name) for step, why in refusals if why]


@cache
def _device(target: str, tf32: bool) -> _runtime.Device | None:
    try:
        return _runtime.open_device(_runtime.port_for_target(target), threads=1, tf32=tf32)
    except (DeviceError, ProgramError) as error:
        logger.info("plans for %s are not tried: %s", target, error)
        return None


@lru_cache(maxsize=REMEMBERED_PLANS)
def _refusal(target: str, executable: str, tf32: bool) -> str:
    """The library's reason against an executable; empty where it takes it."""
    device = _device(target, tf32)
    if device is None:
        return ""
    try:
        device.build_plan(executable)
    except DeviceError as error:
        return str(error)
    return ""
