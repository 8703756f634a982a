"""Measurements for Prometheus, which Ray collects from its processes and shows on a port of each node."""

from __future__ import annotations

from ray.util.metrics import Counter, Gauge, Histogram

_MODEL = ("model", "version")
_LATENCIES_MS: list[float] = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]
_ROWS: list[float] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]


class Metrics:
    """The measurements of one replica; Prometheus sees their names with ``ray_`` in front."""

    def __init__(self) -> None:
        self._requests = Counter("hipdnn_requests", "Requests that were answered.", (*_MODEL, "code"))
        self._latency = Histogram("hipdnn_request_ms", "From body to answer.", _LATENCIES_MS, _MODEL)
        self._rows = Histogram("hipdnn_batch_rows", "Rows of a run of the program.", _ROWS, _MODEL)
        self._run = Histogram("hipdnn_run_ms", "A run of the program.", _LATENCIES_MS, _MODEL)
        self._queue = Gauge("hipdnn_queued_requests", "Requests that wait for a run.", ("model",))
        self._memory = Gauge("hipdnn_device_free_bytes", "Free memory of a GPU.", ("device",))

    def answered(self, model: str, version: str, code: int, elapsed_s: float) -> None:
        """Count a request."""
        tags = {"model": model, "version": version}
        self._requests.inc(tags={**tags, "code": str(code)})
        self._latency.observe(elapsed_s * 1e3, tags=tags)

    def ran(self, model: str, version: str, rows: int, elapsed_s: float) -> None:
        """Count a run."""
        tags = {"model": model, "version": version}
        self._rows.observe(rows, tags=tags)
        self._run.observe(elapsed_s * 1e3, tags=tags)

    def queued(self, model: str, count: int) -> None:
        """Tell how many requests wait."""
        self._queue.set(count, tags={"model": model})

    def free_memory(self, device: str, free_bytes: int) -> None:
        """Tell the free memory of a device."""
        self._memory.set(free_bytes, tags={"device": device})
