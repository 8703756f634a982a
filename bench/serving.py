"""What serving costs, beside a session in this process and ONNX Runtime behind the same server.

``python bench/serving.py PART [--requests N] [--images N] [--minutes N]``; PART is one of

    overhead    one client, ResNet-50 at batch 1: what HTTP and gRPC take beside the run itself
    throughput  32 clients, MobileNetV2, dynamic batches: programs and ONNX Runtime take turns behind the same server
    data        Ray Data with two workers of one thread against one loop with two threads
    killed      a replica is killed under load: requests that are lost
    load        some minutes at 80 % of what the server can do: errors, memory
    bad         one request in ten is malformed, too large, or hung up on
    memory      what one replica and two hold of a program's weights
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).resolve().parent), os.environ.get("PYTHONPATH", "")])

import numpy as np
import onnx
import tritonclient.grpc
import tritonclient.http

import hipdnn_mlir
import models
from serving.running import Running, free_port, serving

IMAGE = (3, 224, 224)
BUCKETS = [1, 4, 8, 16]
CLIENTS = 32
Infer = Callable[[np.ndarray], Any]


def saved(folder: Path, name: str, build: Callable[..., onnx.ModelProto]) -> Path:
    """Save a model with an open batch, and its program with buckets, in a folder of theirs; return the program."""
    (folder / name).mkdir(parents=True)
    model, program = folder / name / f"{name}.onnx", folder / name / f"{name}.hipdnn"
    proto = build()
    for port in (*proto.graph.input, *proto.graph.output):
        port.type.tensor_type.shape.dim[0].dim_param = "batch"
    del proto.graph.value_info[:]
    onnx.save(proto, model)
    hipdnn_mlir.compile(model, buckets={"batch": BUCKETS}).save(program)
    return program


def images(count: int) -> np.ndarray:
    """Random images."""
    return np.random.default_rng(0).standard_normal((count, *IMAGE)).astype(np.float32)


@contextmanager
def over_http(address: str, name: str) -> Iterator[Infer]:
    """A client that sends bytes over HTTP."""
    with tritonclient.http.InferenceServerClient(address, network_timeout=120, connection_timeout=120) as client:

        def infer(array: np.ndarray) -> Any:
            given = tritonclient.http.InferInput("image", array.shape, "FP32")
            given.set_data_from_numpy(array)
            return client.infer(name, [given]).get_response()

        yield infer


@contextmanager
def over_grpc(address: str, name: str) -> Iterator[Infer]:
    """A client over gRPC."""
    with tritonclient.grpc.InferenceServerClient(address) as client:

        def infer(array: np.ndarray) -> Any:
            given = tritonclient.grpc.InferInput("image", array.shape, "FP32")
            given.set_data_from_numpy(array)
            return client.infer(name, [given]).get_response()

        yield infer


def ran_ns(running: Running, name: str) -> int:
    """Nanoseconds of all runs so far, as the server counts them."""
    with tritonclient.http.InferenceServerClient(running.http) as client:
        (found,) = client.get_inference_statistics(name)["model_stats"]
    return int(found["inference_stats"]["compute_infer"]["ns"])


def overhead(folder: Path, given: argparse.Namespace) -> None:
    """Print what a request takes beside its run, and how that is spread."""
    program = saved(folder, "resnet50", models.resnet50)
    image, session = images(1), hipdnn_mlir.load(program, threads=2)
    session.prewarm([{"batch": 1}])
    with (
        serving(folder, program, "--threads", 2, "--max-batch-size", 1) as running,
        over_http(running.http, "resnet50") as http,
        over_grpc(running.grpc, "resnet50") as grpc,
    ):
        ways: dict[str, Infer] = {"HTTP": http, "gRPC": grpc, "session": lambda x: session.run(None, {"image": x})}
        taken: dict[str, list[float]] = {way: [] for way in ways}
        beside: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(given.requests + 10):
            for way, infer in ways.items():
                before = ran_ns(running, "resnet50")
                start = time.perf_counter()
                infer(image)
                elapsed = time.perf_counter() - start
                if turn >= 10:
                    taken[way].append(elapsed * 1e3)
                    beside[way].append(elapsed * 1e3 - (ran_ns(running, "resnet50") - before) / 1e6)
    for way in ("HTTP", "gRPC"):
        p99 = quantiles(taken[way], n=100)[98]
        print(
            f"{way}: {median(beside[way]):.2f} ms beside the run (session {median(taken['session']):.1f} ms, "
            f"request {median(taken[way]):.1f} ms, p99 {p99 / median(taken[way]):.2f} x the median)"
        )


def per_second(address: str, name: str, seconds: float, clients: int = CLIENTS) -> float:
    """Requests a second of some clients, each of which sends the next one when it has the answer."""
    image, ends = images(1), time.perf_counter() + seconds

    def client(_: int) -> int:
        count = 0
        with over_http(address, name) as infer:
            while time.perf_counter() < ends:
                infer(image)
                count += 1
        return count

    with ThreadPoolExecutor(clients) as pool:
        return sum(pool.map(client, range(clients))) / seconds


def throughput(folder: Path, given: argparse.Namespace) -> None:
    """Print requests a second of both engines, each behind a server of its own, in turns."""
    program = saved(folder, "mobilenet_v2", models.mobilenet_v2)
    found: dict[str, list[float]] = {"OrtServer": [], "ModelServer": []}
    for turn in range(given.turns):
        for server in found if turn % 2 else reversed(found):
            address = f"127.0.0.1:{free_port()}"
            command = [sys.executable, __file__, "serve", "--program", str(program), "--server", server]
            process = subprocess.Popen([*command, "--address", address], stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "ready"
            per_second(address, "mobilenet_v2", 3)
            found[server].append(per_second(address, "mobilenet_v2", given.seconds))
            process.send_signal(signal.SIGTERM)
            process.wait()
    ours, theirs = median(found["ModelServer"]), median(found["OrtServer"])
    print(f"{CLIENTS} clients, MobileNetV2: {ours:.1f} requests/s, ONNX Runtime {theirs:.1f}: {ours / theirs:.2f} x")


def serve_until_stopped(given: argparse.Namespace) -> None:
    """Serve a program by a class of servers."""
    from hipdnn_mlir.serving import deployment
    from hipdnn_mlir.serving.settings import Settings

    host, port = given.address.split(":")
    listening = deployment.Listening(host=host, port=int(port))
    deployment.prepare(listening, 64 << 20)
    import ort_server
    from hipdnn_mlir.serving.server import ModelServer

    with TemporaryDirectory(prefix="hipdnn-", dir="/tmp") as folder:
        deployment.start_ray(listening, folder)
        deployment.start_proxies(listening)
        try:
            server = ort_server.OrtServer if given.server == "OrtServer" else ModelServer
            deployment.deploy(Settings(paths=(str(given.program),), cpus=2), server)
            print("ready", flush=True)
            signal.sigwait([signal.SIGTERM, signal.SIGINT])
        finally:
            deployment.stop(folder)


def data(folder: Path, given: argparse.Namespace) -> None:
    """Print images a second of Ray Data and of a loop, both of which make the images from numbers."""
    import ray
    import ray.data

    from hipdnn_mlir.serving import Predictor

    program = saved(folder, "mobilenet_v2", models.mobilenet_v2)
    batch = 16

    def made(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        values = (rows["id"] % 255 / 255).astype(np.float32)
        return {"image": np.broadcast_to(values[:, None, None, None], (len(values), *IMAGE)).copy()}

    ray.init("local", num_cpus=3, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    session = hipdnn_mlir.load(program, threads=2)
    session.prewarm()

    def loop() -> None:
        for start in range(0, given.images, batch):
            session.run(None, made({"id": np.arange(start, min(start + batch, given.images))}))

    class Made(Predictor):
        """Makes images, and runs the program on them."""

        def __call__(self, rows: Any) -> Any:
            outputs = super().__call__(made(rows))
            return {name: column.argmax(1) for name, column in outputs.items()}

    def job() -> None:
        found = ray.data.range(given.images).map_batches(
            Made,
            fn_constructor_kwargs={"program": str(program)},
            batch_size=batch * 8,
            num_cpus=1,
            compute=ray.data.ActorPoolStrategy(size=2),
        )
        assert found.materialize().count() == given.images

    times: dict[str, list[float]] = {"loop": [], "job": []}
    for _ in range(given.turns):
        for name, way in (("loop", loop), ("job", job)):
            start = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - start)
    ray.shutdown()
    ratio = median(a / b for a, b in zip(times["loop"], times["job"], strict=True))
    rates = {name: given.images / median(found) for name, found in times.items()}
    print(f"{given.images} images: loop {rates['loop']:.1f}/s, Ray Data {rates['job']:.1f}/s: {ratio:.2f} x")


class Clients:
    """Clients that send images at a rate all together, and count what is lost."""

    def __init__(self, running: Running, name: str, rate: float, clients: int = 8) -> None:
        self._running, self._name, self._wait_s, self._clients = running, name, clients / rate, clients
        self._end = time.perf_counter()
        self.answered, self.lost = 0, 0
        self.errors: set[str] = set()

    def run(self, seconds: float, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Send for some time."""
        self._end = time.perf_counter() + seconds
        with ThreadPoolExecutor(self._clients) as pool:
            tasks = [pool.submit(self._client) for _ in range(self._clients)]
            meanwhile()
            for task in tasks:
                task.result()

    def _client(self) -> None:
        image, due = images(1), time.perf_counter()
        with over_http(self._running.http, self._name) as infer:
            while time.perf_counter() < self._end:
                try:
                    infer(image)
                    self.answered += 1
                except Exception as error:  # noqa: BLE001 - whatever it is, the request is lost
                    self.lost += 1
                    self.errors.add(str(error)[:200])
                due += self._wait_s
                time.sleep(max(0.0, due - time.perf_counter()))


def killed(folder: Path, given: argparse.Namespace) -> None:
    """Kill one of two replicas under load."""
    program = saved(folder, "mobilenet_v2", models.mobilenet_v2)
    with serving(folder, program, "--replicas", 2, "--threads", 1) as running:
        clients = Clients(running, "mobilenet_v2", given.rate)

        def kill() -> None:
            for _ in range(given.turns):
                time.sleep(5)
                first, *_ = running.replicas()
                os.kill(first, signal.SIGKILL)
                while len(set(running.replicas()) - {first}) < 2:
                    time.sleep(0.1)

        clients.run(20 * given.turns, kill)
    print(
        f"{given.turns} replicas killed: {clients.lost} of {clients.answered + clients.lost} requests lost",
        clients.errors or "",
    )


def kept_bytes(process: int, file: str = "") -> int:
    """Bytes of memory that a process has for itself alone and its share of what it shares; of the mapping of a file if given."""
    total, is_wanted = 0, not file
    for line in Path(f"/proc/{process}/smaps").read_text().splitlines():
        if line[:1].isdigit() or line[:1] in "abcdef":
            is_wanted = not file or line.endswith(file)
        elif is_wanted and line.startswith("Pss:"):
            total += int(line.split()[1]) << 10
    return total


def load(folder: Path, given: argparse.Namespace) -> None:
    """Print errors and memory of some minutes at 80 % of what the server can do."""
    program = saved(folder, "mobilenet_v2", models.mobilenet_v2)
    with serving(folder, program, "--threads", 1) as running:
        most = per_second(running.http, "mobilenet_v2", 10, clients=8)
        clients, kept = Clients(running, "mobilenet_v2", 0.8 * most), []
        (replica,) = running.replicas()
        clients.run(20)

        def watch() -> None:
            for _ in range(max(4, int(60 * given.minutes / 15))):
                kept.append(kept_bytes(replica) / 1e6)
                time.sleep(15)

        clients.run(60 * given.minutes, watch)
    print(
        f"{given.minutes} minutes at {0.8 * most:.0f} requests/s: {clients.lost} of {clients.answered} lost",
        clients.errors or "",
    )
    print(f"memory of the replica: {kept[0]:.0f} MB first, {kept[-1]:.0f} MB last, {max(kept):.0f} MB at most")


def bad(folder: Path, given: argparse.Namespace) -> None:
    """Send one bad request beside ten good ones."""
    program = saved(folder, "mobilenet_v2", models.mobilenet_v2)
    with serving(folder, program, "--threads", 1, "--max-body-mb", 1) as running:
        clients, answers = (
            Clients(running, "mobilenet_v2", given.rate),
            {"malformed": [], "too large": [], "hung up": 0},
        )

        def send() -> None:
            for turn in range(int(given.seconds * given.rate / 10)):
                connection = HTTPConnection(running.http, timeout=60)
                body = b"{" if turn % 3 == 0 else b" " * (1 << 21 if turn % 3 == 1 else 1 << 19)
                connection.request("POST", "/v2/models/mobilenet_v2/infer", body)
                if turn % 3 == 2:
                    answers["hung up"] += 1
                else:
                    answers["too large" if turn % 3 else "malformed"].append(connection.getresponse().status)
                connection.close()
                time.sleep(10 / given.rate)

        clients.run(given.seconds, send)
    print(f"{clients.lost} of {clients.answered} good requests lost", clients.errors or "")
    for name in ("malformed", "too large"):
        print(f"{name}: {len(answers[name])} requests, answered with {sorted(set(answers[name]))}")
    print(f"hung up: {answers['hung up']}")


def memory(folder: Path, _: argparse.Namespace) -> None:
    """Print the memory of replicas that hold a ResNet-50."""
    program = saved(folder, "resnet50", models.resnet50)
    print(f"program file: {program.stat().st_size / 1e6:.0f} MB")
    for count in (1, 2):
        with serving(folder, program, "--replicas", count, "--threads", 1) as running:
            for replica in running.replicas():
                own, mapped = kept_bytes(replica) / 1e6, kept_bytes(replica, program.name) / 1e6
                print(f"{count} replicas: {own:.0f} MB of one, {mapped:.0f} MB of that the file's share")


PARTS = {part.__name__: part for part in (overhead, throughput, data, killed, load, bad, memory)}


def main() -> None:
    """Measure a part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "serve"])
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rate", type=float, default=20)
    for name in ("--program", "--server", "--address"):
        parser.add_argument(name, default="")
    given = parser.parse_args()
    if given.part == "serve":
        serve_until_stopped(given)
        return
    with TemporaryDirectory() as folder:
        PARTS[given.part](Path(folder), given)


if __name__ == "__main__":
    main()
