"""What a session says of a loaded program: memory, plans, times."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stats:
    """What a loaded program holds and what loading it cost.

    Attributes:
        arena_bytes: The one block for temporaries and workspaces that each context has.
        largest_live_bytes: The most bytes of them alive at one step: the arena's lower bound.
        constant_bytes: Weights.
        steps: Steps of the program.
        copy_steps: Those of them that copy.
        launch_steps: Those of them that run a kernel.
        executables: Operation graphs.
        kernels: Kernels for what no operation graph expresses.
        plans: Plans built or shared: graphs, once per set of constants where the library binds them.
        contexts: Contexts alive, at most one per concurrent run so far.
        plan_ms: Time spent building plans.
        load_ms: Time spent making the program ready, plans included.
        specializations: Combinations of sizes of the dynamic dimensions that the program is loaded for.
    """

    arena_bytes: int
    largest_live_bytes: int
    constant_bytes: int
    steps: int
    copy_steps: int
    launch_steps: int
    executables: int
    kernels: int
    plans: int
    contexts: int
    plan_ms: float
    load_ms: float
    specializations: int


@dataclass(frozen=True)
class StepProfile:
    """How long one step took.

    Attributes:
        name: The step, named after the ONNX nodes in it.
        kind: ``execute``, ``launch`` or ``copy``.
        summary: What its executable or kernel computes; empty for a copy.
        engine: Engine of its plan; empty where there is none.
        description: The library's line about the plan, where it has one.
        workspace_bytes: Workspace of the plan.
        median_us: Median over the repetitions, in microseconds.
        min_us: Least of them.
    """

    name: str
    kind: str
    summary: str
    engine: str
    description: str
    workspace_bytes: int
    median_us: float
    min_us: float
