"""A server whose replicas this machine has no room for says so: Ray Serve would wait for ever."""

from __future__ import annotations

import pytest
import ray

from hipdnn_mlir.serving import deployment
from hipdnn_mlir.serving.settings import Settings
from hipdnn_mlir_runtime.errors import ModelError


@pytest.fixture(autouse=True)
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 2.0, "memory": 1e9})
    monkeypatch.setattr(deployment, "_patiently", lambda _: None)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (Settings(gpus=1), r"1 GPU each: Ray finds 0 GPU here.*amdsmi"),
        (Settings(replicas=3), r"--replicas 3 with 1 CPU each: Ray finds 2 CPU here: expected 3.*--threads"),
    ],
)
def test_what_is_not_there_is_named(settings: Settings, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match=reason):
        deployment.deploy(settings)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6379")  # of a cluster, which others may join
    deployment.deploy(settings)


def test_shares_of_a_cpu_add_up() -> None:
    deployment.deploy(Settings(replicas=7, cpus=2 / 7))


def test_shares_are_of_what_a_container_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose process sees all CPUs of the machine."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)))
    assert [deployment.share(count) for count in (1, 2, 4)] == [2, 1, 0.5]
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6379")
    assert deployment.share(2) == 32
