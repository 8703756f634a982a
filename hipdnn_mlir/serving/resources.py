"""What Ray has given to an actor."""

from __future__ import annotations

import os
from typing import Any


def own_threads() -> int:
    """Return the CPUs of the actor that calls this, at least one; outside of an actor 0, which stands for all."""
    import ray

    if not ray.is_initialized():
        return 0
    context: Any = ray.get_runtime_context()
    if context.get_actor_id() is None:
        return 0
    cpus = float(context.get_assigned_resources().get("CPU", 0))
    return max(1, min(int(cpus), os.cpu_count() or 1))
