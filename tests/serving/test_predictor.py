"""``Predictor`` in jobs of Ray Data, on a cluster of two nodes on this machine; what it computes against ONNX Runtime."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import ray
import ray.data
import yaml
from ray.cluster_utils import Cluster
from ray.serve.schema import ServeDeploySchema

import hipdnn_mlir
from hipdnn_mlir.serving import Predictor
from hipdnn_mlir.serving.deployment import Listening, application, prepare
from hipdnn_mlir.serving.grpc_service import add_service
from hipdnn_mlir.serving.rows import Rows
from hipdnn_mlir_runtime.errors import ModelError
from serving.digits import DIGITS, EXAMPLES, TOLERANCE, Images, compiled, digits_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 3, "include_dashboard": False})
    try:
        made.add_node(num_cpus=3)
        ray.init(address=made.address, log_to_driver=False, logging_level="warning")
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield
    finally:
        ray.shutdown()
        made.shutdown()


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The classifier with an open batch, with buckets of it, and at a batch of 60."""
    folder = tmp_path_factory.mktemp("programs")
    made = {"open": compiled(), "buckets": compiled([1, 8, 32]), "fixed": hipdnn_mlir.compile(DIGITS)}
    for name, program in made.items():
        program.save(folder / f"{name}.hipdnn")
    return {name: folder / f"{name}.hipdnn" for name in made}


@pytest.fixture(scope="module")
def images() -> Images:
    return np.random.default_rng(0).uniform(0, 1, (120, 1, 8, 8)).astype(np.float32)


def test_a_job_gives_what_onnx_runtime_gives_on_two_nodes(
    cluster: None, programs: dict[str, Path], images: Images
) -> None:
    data = ray.data.from_items([{"id": row, "image": image} for row, image in enumerate(images)])
    made = data.map_batches(
        Predictor,
        fn_constructor_kwargs={"program": str(programs["buckets"])},
        batch_size=37,
        num_cpus=2,  # of the three that a node has: the two workers are on two nodes
        compute=ray.data.ActorPoolStrategy(size=2),
    ).take_all()
    assert sorted(made[0]) == ["id", "probabilities"]
    got = np.stack([row["probabilities"] for row in sorted(made, key=lambda row: row["id"])])
    np.testing.assert_allclose(got, digits_of(images), **TOLERANCE)


def test_a_job_keeps_rows_that_fail_with_their_errors_when_asked(
    cluster: None, programs: dict[str, Path], images: Images
) -> None:
    rows = [{"id": row, "image": images[row] if row != 5 else images[row, :, :7]} for row in range(20)]
    made = (
        ray.data.from_items(rows)
        .map_batches(
            Predictor,
            fn_constructor_kwargs={"program": str(programs["open"]), "errors": "keep", "keep": ["image"]},
            batch_size=10,
            num_cpus=1,
            compute=ray.data.ActorPoolStrategy(size=1),
        )
        .take_all()
    )
    made.sort(key=lambda row: row["id"])
    assert [row["id"] for row in made if row["error"]] == [5]
    assert "'image'" in made[5]["error"]
    assert made[5]["image"].shape == (1, 7, 8)
    good = [row for row in range(20) if row != 5]
    got = np.stack([made[row]["probabilities"] for row in good])
    np.testing.assert_allclose(got, digits_of(images[good]), **TOLERANCE)


def test_the_example_labels_digits(
    cluster: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["label.py"])
    runpy.run_path(str(EXAMPLES / "serving/label.py"), run_name="__main__")
    assert "360 images labelled" in capsys.readouterr().out


def test_the_example_for_kubernetes_is_a_configuration_of_serve(
    programs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = yaml.safe_load((EXAMPLES / "serving/kuberay.yaml").read_text())["spec"]
    schema = ServeDeploySchema.model_validate(yaml.safe_load(service["serveConfigV2"]))
    (found,) = schema.applications
    module, _, name = found.import_path.partition(":")
    assert (module, name) == (application.__module__, application.__name__)
    built = application({**found.args, "paths": [str(programs["open"])]})
    assert built._bound_deployment.name == "models"
    assert schema.grpc_options.grpc_servicer_functions == [f"{add_service.__module__}.{add_service.__name__}"]
    worker = service["rayClusterConfig"]["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]
    of_the_command: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", of_the_command)
    prepare(Listening(), 1 << 20)
    stated = {entry["name"]: entry["value"] for entry in worker["env"]}
    assert "RAY_SERVE_ENABLE_HA_PROXY" in stated
    assert stated.items() <= of_the_command.items()


@pytest.mark.parametrize("name", ["open", "buckets", "fixed"])
def test_outputs_equal_those_of_onnx_runtime(name: str, programs: dict[str, Path], images: Images) -> None:
    made = Predictor(str(programs[name]))({"image": images, "id": np.arange(120)})
    np.testing.assert_allclose(made["probabilities"], digits_of(images), **TOLERANCE)
    assert made["id"].tolist() == list(range(120))


def test_rows_may_be_inputs_as_the_program_takes_them(programs: dict[str, Path], images: Images) -> None:
    made = Predictor(str(programs["fixed"]))({"image": images.reshape(2, 60, 1, 8, 8)})
    np.testing.assert_allclose(made["probabilities"].reshape(120, -1), digits_of(images), **TOLERANCE)


def test_an_empty_batch_gives_no_rows(programs: dict[str, Path], images: Images) -> None:
    made = Predictor(str(programs["open"]))({"image": images[:0]})
    assert made["probabilities"].shape == (0, 10)


def test_a_row_that_fails_is_named(programs: dict[str, Path], images: Images) -> None:
    column = np.empty(3, object)
    column[:] = [images[0], images[1], images[2, :, :7]]
    with pytest.raises(ModelError, match=r"row 2 of the batch: 'image'.*errors='keep'"):
        Predictor(str(programs["open"]))({"image": column})


def test_rows_that_do_not_fill_a_fixed_batch_are_refused(programs: dict[str, Path], images: Images) -> None:
    with pytest.raises(ModelError, match="expected a sum of 60"):
        Predictor(str(programs["fixed"]))({"image": images[:61]})


def test_a_missing_column_and_a_bad_option_are_named(programs: dict[str, Path], images: Images) -> None:
    with pytest.raises(ModelError, match="no column for the inputs image: expected picture"):
        Predictor(str(programs["open"]))({"picture": images})
    with pytest.raises(ModelError, match="errors: bad value"):
        Predictor(str(programs["open"]), errors="ignore")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="keep: no such input"):
        Predictor(str(programs["open"]), keep=["picture"])


@pytest.mark.parametrize(
    ("sizes", "is_padded", "count", "parts"),
    [
        ((), False, 7, [7]),
        ((1, 8, 32), True, 75, [32, 32, 8, 1, 1, 1]),
        ((1, 8, 32), True, 71, [32, 32, 7]),
        ((8, 32), True, 3, [3]),
        ((1, 8), False, 7, [1] * 7),
        ((4,), False, 8, [4, 4]),
        ((), True, 0, []),
    ],
)
def test_rows_run_in_sizes_of_the_program(
    sizes: tuple[int, ...], is_padded: bool, count: int, parts: list[int]
) -> None:
    assert Rows("batch", sizes, is_padded).split(count) == parts
