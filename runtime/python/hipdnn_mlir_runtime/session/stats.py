"""What a session says of a loaded program: memory, plans, time of loading."""

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
