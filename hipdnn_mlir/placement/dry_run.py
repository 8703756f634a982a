"""Whether a region compiles: the compiler itself is asked, with stand-ins for the weights."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hipdnn_mlir_runtime.errors import (
    DeviceError,
    HipdnnMlirError,
    MissingToolError,
    ModelError,
    PassError,
    PlanRefusedError,
    RefusedPlan,
    Reject,
    UnsupportedError,
)

from ..compiler.lower import lower
from ..compiler.program import Lowered
from ..frontend.container import stand_ins
from ..frontend.prepare import with_shapes
from ..frontend.related_dims import related
from ..frontend.shape_inference import DATA_DEPENDENT, SizesContradictError
from ..frontend.sizes.input_sizes import input_sizes
from ..ops.evaluate import Array
from ..ops.strides import Dims
from .extract import Region
from .graph import OnnxGraph
from .plans import RULE, lowered_here
from .shapes import PROBES

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Failure:
    """Why a region does not compile.

    Attributes:
        rejects: node -> reasons, where the compiler names nodes of the region.
        is_certain: whether each of those nodes is known to be the reason, rather than one of several named together.
        rule, reason: where it names none.
    """

    rejects: dict[int, list[Reject]]
    is_certain: bool = True
    rule: str = ""
    reason: str = ""


def dry_run(graph: OnnxGraph, region: Region, target: str, precision: str) -> Lowered | Failure:
    """Compile a region up to the values of its weights and build its plans, or say why that fails.

    Raises:
        MissingToolError: something that the target's code is made with is not installed.
    """
    try:
        return lowered_here(lambda refused: _lowered(graph, region, target, precision, refused))
    except PlanRefusedError as error:
        rejects = (Reject(plan.summary, RULE, plan.reason, plan.nodes) for plan in error.refusals)
        return _attributed(graph, region, tuple(rejects))
    except UnsupportedError as error:
        return _attributed(graph, region, error.rejects)
    except MissingToolError:
        raise  # says nothing about the region
    except HipdnnMlirError as error:
        rule = "defect" if isinstance(error, PassError) else "device" if isinstance(error, DeviceError) else "model"
        return Failure({}, rule=rule, reason=f"{error.message}: got {error.got}" if error.got else error.message)
    except Exception as error:
        # Whatever a library under the compiler raises, the host can run the node itself.
        logger.warning("%d nodes run on the CPU, because compiling them failed", len(region.members), exc_info=True)
        return Failure({}, rule="defect", reason=f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")


def _lowered(graph: OnnxGraph, region: Region, target: str, precision: str, refused: Sequence[RefusedPlan]) -> Lowered:
    """The program of a region, with numbers in the place of dynamic dimensions; of a whole model the dynamic program, where there is one.

    That takes several times as long, so it is left to the request to compile where it might only show what has to stay outside.
    """
    external = stand_ins(region.model)
    if region.is_dynamic and len(region.members) == len(graph.nodes):
        try:
            return lower(region.model, target=target, precision=precision, refused=refused, external=external)
        except (ModelError, UnsupportedError) as error:
            logger.info("no single program serves all sizes of the model: %s", error)
    options: dict[str, Any] = {"target": target, "precision": precision, "refused": refused, "external": external}
    try:
        return lower(with_shapes(region.model, region.shapes), **options)
    except SizesContradictError:
        shapes = _related_shapes(region, external) if region.is_dynamic else region.shapes
        if shapes == region.shapes:
            raise
    return lower(with_shapes(region.model, shapes), **options)


def _related_shapes(region: Region, external: Mapping[str, Array]) -> dict[str, Dims]:
    """Sizes to try where the region's operators take no single number for all dynamic dimensions: they fix or relate some."""
    sizes = related(region.model, input_sizes(region.model, {}, "region"), (), external=external)
    return sizes.at([PROBES[0]] * len(sizes.table.symbols))


def _attributed(graph: OnnxGraph, region: Region, rejects: tuple[Reject, ...]) -> Failure:
    """The rejects by node; names of what is no node of the region, such as the inside of a function, do not count."""
    numbers = {graph.nodes[member].name: member for member in region.members}
    found: dict[int, list[Reject]] = {}
    is_certain = True
    for reject in rejects:
        whole = numbers.get(reject.node)
        named = [whole] if whole is not None else [numbers[n] for n in reject.node.split("+") if n in numbers]
        is_certain &= len(named) == 1
        for member in named:
            found.setdefault(member, []).append(replace(reject, node=graph.nodes[member].name))
    roots = _without_followers(graph, found)
    first = rejects[0]
    return Failure(roots, is_certain, first.rule, f"{first.op}: {first.reason}")


def _without_followers(graph: OnnxGraph, found: dict[int, list[Reject]]) -> dict[int, list[Reject]]:
    """Leave out nodes whose sizes are unknown only because those of a rejected node before them are."""
    behind: set[int] = set()
    roots = {}
    for member, rejects in sorted(found.items()):
        data_dependent = all(reject.rule == DATA_DEPENDENT for reject in rejects)
        if data_dependent and graph.sources(member) & behind:
            behind.add(member)
            continue
        if data_dependent:
            behind.add(member)
        roots[member] = rejects
    return roots
