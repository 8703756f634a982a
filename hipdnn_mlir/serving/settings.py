"""How models are served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .repository import ModelFile

APPLICATION, DEPLOYMENT = "hipdnn-mlir", "models"
"""What Ray Serve calls a server of models."""


@dataclass(frozen=True)
class Settings:
    """What replicas are made with.

    Attributes:
        paths: What models are looked for in; a replica looks when it starts, and when a model is to be loaded again.
        files: What was there when the server was started; of models, the programs that they were compiled to.
        replicas: Least number of replicas.
        max_replicas: Most of them, where the queue decides; 0 for as many as the least number.
        cpus: CPUs of a replica, which are also the threads of a run.
        gpus: GPUs of a replica.
        max_batch_size: Most rows of requests that run together; 0 for the largest bucket where rows are proved to be independent, else 1.
        batch_wait_ms: How long a request waits for others while nothing runs.
        max_queue: Requests that a replica lets wait; of more, each is told to come again later.
        max_running: Texts of a model that are generated at once.
        max_body_bytes: Largest body of a request.
        session: Options of sessions.
    """

    paths: tuple[str, ...] = ()
    files: tuple[ModelFile, ...] = ()
    replicas: int = 1
    max_replicas: int = 0
    cpus: float = 1
    gpus: float = 0
    max_batch_size: int = 0
    batch_wait_ms: float = 0
    max_queue: int = 256
    max_running: int = 16
    max_body_bytes: int = 64 << 20
    session: Mapping[str, Any] = field(default_factory=dict)
