"""Ray Serve: how it is started for a server of models, and what is deployed."""

from __future__ import annotations

import errno
import functools
import logging
import os
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hipdnn_mlir_runtime.errors import ModelError

from .settings import APPLICATION, DEPLOYMENT, Settings

if TYPE_CHECKING:
    from .server import ModelServer

logger = logging.getLogger(__name__)

_MOST_AT_ONCE = 1024
"""Requests that a replica reads at once; what waits for a run is among them."""
_BUSY = 32
"""Requests of a replica beyond which there is to be another one."""
_PORTS, _BLOCK, _PROBED = range(20_000, 32_000), 200, 8
"""Where proxies and replicas listen, how many ports one server has there for either protocol, and how many of them are looked at."""
_RETRIES = "conn-failure empty-response\n    option http-buffer-request"
"""A request whose replica has died is sent again: running a model twice does no harm. HAProxy can send what it has read before it sends
any, so it reads all that its buffer holds; Ray has no setting for that, but puts these words into HAProxy's configuration as they are."""
_RESENT = 1 << 20
"""Bytes of that buffer."""
_SHUTDOWN_S = 30
"""Until requests are given up that have not ended when a server is stopped."""
_SOON_S = 5
"""Until it is given up to wait for what takes less than a second where nothing is wrong."""
_STARTED_S = 600
"""Until a start is given up. Serve itself waits for its proxies for a minute; importing them takes longer on a busy machine."""
_ROUNDING = 1e-3
"""Of CPUs and GPUs that Ray counts."""
_CPU_HINT = "give --threads, or fewer --replicas"
_GPU_HINT = (
    "give fewer --replicas, or a part of a GPU with --gpus; Ray finds AMD's GPUs by a package: pip install amdsmi"
)
_LOGGING = {"encoding": "JSON"}
_HAPROXY_FILES = {
    "CONFIG_FILE_LOC": "haproxy.cfg",
    "SOCKET_PATH": "admin.sock",
    "SERVER_STATE_BASE": "",
    "SERVER_STATE_FILE": "server-state",
}
"""Of Ray's settings for HAProxy those that are paths."""


@dataclass(frozen=True)
class Listening:
    """Where a server listens.

    Attributes:
        host: Address of an interface of this machine.
        port: For HTTP.
        grpc_port: For gRPC; 0 for none.
        metrics_port: For Prometheus.
        timeout_s: Time limit of a request; 0 for none.
        tls_cert: File of a certificate, for HTTPS; empty for HTTP.
        tls_key: File of its key.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    grpc_port: int = 0
    metrics_port: int = 0
    timeout_s: float = 0
    tls_cert: str = ""
    tls_key: str = ""

    def check(self) -> None:
        """Refuse what it is impossible to listen with, which Serve's processes would tell nobody.

        Raises:
            ModelError: A port is taken, or given twice, the host is no address of this machine, or certificate and key are none.
        """
        ports = {"--port": self.port, "--grpc-port": self.grpc_port, "--metrics-port": self.metrics_port}
        for flag, port in ports.items():
            if not port:
                continue
            same = [other for other in ports if ports[other] == port and other != flag]
            if same:
                raise ModelError(f"{port} is {same[0]}, too", where=flag, hint="choose another one")
            _check_address(self.host, port, flag)
        if (self.tls_cert == "") != (self.tls_key == ""):
            missing = "--tls-cert" if self.tls_key else "--tls-key"
            raise ModelError("a certificate needs its key", where=missing, hint="give both")
        if self.tls_cert:
            self._check_certificate()

    def _check_certificate(self) -> None:
        for flag, path in (("--tls-cert", self.tls_cert), ("--tls-key", self.tls_key)):
            try:
                Path(path).open("rb").close()
            except OSError as error:
                raise ModelError(f"{path}: {error.strerror}", where=flag, hint="check the path") from error
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.tls_cert, self.tls_key, "")
        except ssl.SSLError as error:
            expected = "a certificate and its key without a password, in PEM"
            raise ModelError(f"not usable: {error.reason or error}", where="--tls-cert", expected=expected) from error


def _check_address(host: str, port: int, flag: str) -> None:
    """Refuse an address that this machine has not, or of which the port is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            message = f"cannot listen on {host}:{port}: {error.strerror or error}"
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise ModelError(message, where=flag, hint="choose another one") from error
            raise ModelError(message, where="--host", expected="an IPv4 address of this machine") from error


def prepare(listening: Listening, most_bytes: int) -> None:
    """Set what Ray Serve reads from the environment when it is imported; what the user has set stays.

    HAProxy is in front of replicas, which read requests themselves: Ray's proxy in Python takes 10 ms for an image (docs/adr/0056). Serve
    configures no TLS for it, so that takes the one in Python.

    Args:
        listening: Where the server listens.
        most_bytes: Of a request.
    """
    settings: dict[str, Any] = {
        "RAY_USAGE_STATS_ENABLED": 0,
        "RAY_SERVE_RUN_USER_CODE_IN_SEPARATE_THREAD": 0,
        "RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP": 0,
        "RAY_SERVE_GRPC_MAX_MESSAGE_SIZE": most_bytes,
        "RAY_SERVE_LOG_TO_STDERR": 0,  # requests are logged in Serve's files
        "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": _STARTED_S,  # on a busy machine a proxy needs more than Serve's 5 to be imported
        # What glibc's own limits may grow to. With less, HAProxy faults its buffers in for each request.
        "MALLOC_MMAP_THRESHOLD_": 32 << 20,
        "MALLOC_TRIM_THRESHOLD_": 64 << 20,
    }
    if _address() == "local":
        settings["RAY_AUTH_MODE"] = "token"  # which Ray takes by itself, too, but then says so at each start
    if not listening.tls_cert:
        settings |= {
            "RAY_SERVE_ENABLE_HA_PROXY": 1,
            "RAY_SERVE_HAPROXY_RETRY_ON": _RETRIES,
            "RAY_SERVE_HAPROXY_TUNE_BUFSIZE": _RESENT,
            "RAY_SERVE_HAPROXY_H2_FE_INITIAL_WINDOW_SIZE": _RESENT,  # else a client sends 64 KB, and waits
            "RAY_SERVE_HAPROXY_METRICS_ENABLED": 0,  # replicas count requests themselves; here each one costs a line that Python reads
            "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": 2,
            "RAY_SERVE_HAPROXY_STARTUP_TIMEOUT_S": _STARTED_S,
            **_own_ports(),
        }
    for name, value in settings.items():
        os.environ.setdefault(name, str(value))


def start_ray(listening: Listening, folder: str) -> None:
    """Start Ray, or join the cluster that RAY_ADDRESS names; `prepare` comes before. Ray sets its own handlers of signals.

    Args:
        listening: Where the server listens.
        folder: For HAProxy's files. By default all servers of a machine share one, which is the first user's. It is the caller's, who
            removes it after `stop`. Sockets are in it: their paths have 97 characters, of which 67 are HAProxy's.

    Raises:
        ModelError: Ray cannot be started or joined.
    """
    import ray

    address = _address()
    options: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    if listening.metrics_port and address == "local":
        options["_metrics_export_port"] = listening.metrics_port
    for name, file in _HAPROXY_FILES.items():
        os.environ[f"RAY_SERVE_HAPROXY_{name}"] = f"{folder}/{file}"
    try:
        with _in_groups_of_their_own():
            ray.init(
                address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False, **options
            )
    except Exception as error:  # Ray raises bare ones where a process of its own is late
        where = "the logs in /tmp/ray" if address == "local" else "ray status"
        hint = f"see {where}; on a busy machine, try again"
        raise ModelError(f"Ray does not start: {error}", where=address, hint=hint) from error


def _address() -> str:
    """Return the cluster to join; without one, Ray would join whatever runs on this machine."""
    return os.environ.get("RAY_ADDRESS", "local")


def share(replicas: int) -> float:
    """Return the CPUs of each of some replicas on this machine; `start_ray` comes before. Ray knows of a container's quota."""
    import ray

    there = float(len(os.sched_getaffinity(0)))
    if _address() == "local":
        there = min(there, ray.cluster_resources().get("CPU", there))
    each = there / replicas
    return int(each) if each >= 1 else each


def start_proxies(listening: Listening) -> None:
    """Start what listens; `start_ray` comes before.

    Raises:
        ModelError: It does not start.
    """
    import ray
    from ray import serve

    http: dict[str, Any] = {"host": listening.host, "port": listening.port}
    if listening.tls_cert:
        http |= {"ssl_certfile": listening.tls_cert, "ssl_keyfile": listening.tls_key}
    grpc: dict[str, Any] = {"port": listening.grpc_port, "enable_reflection": False}
    if listening.timeout_s:
        http["request_timeout_s"] = grpc["request_timeout_s"] = listening.timeout_s
    if listening.grpc_port:
        grpc["grpc_servicer_functions"] = ["hipdnn_mlir.serving.grpc_service.add_service"]
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    grpc_options = grpc if listening.grpc_port else None
    try:
        _patiently(lambda: serve.start(http_options=http, grpc_options=grpc_options, logging_config=_LOGGING))
    except (ray.exceptions.RayError, TimeoutError) as error:
        raise ModelError(
            f"Ray Serve does not start: {str(error).splitlines()[-1]}", hint="see /tmp/ray/session_latest/logs/serve"
        ) from error


def application(args: Mapping[str, Any], server: type[ModelServer] | None = None) -> Any:
    """Return the application for Ray Serve, whose configuration files name this function (`import_path`).

    Args:
        args: The attributes of `Settings`.
        server: What a replica runs; `ModelServer` by default.
    """
    from ray import serve

    from .server import ModelServer

    settings = Settings(**args)
    scaling: dict[str, Any] = {"num_replicas": settings.replicas}
    if settings.max_replicas > settings.replicas:
        bounds = {"min_replicas": settings.replicas, "max_replicas": settings.max_replicas}
        scaling = {"autoscaling_config": {**bounds, "target_ongoing_requests": _BUSY}}
    deployment: Any = serve.deployment(serve.ingress()(server or ModelServer))
    deployment = deployment.options(
        name=DEPLOYMENT,
        ray_actor_options={"num_cpus": settings.cpus, "num_gpus": settings.gpus},
        max_ongoing_requests=min(_MOST_AT_ONCE, settings.max_queue),
        max_queued_requests=settings.max_queue,
        backpressure_config={"status_code": 429, "retry_after_s": 1},
        graceful_shutdown_timeout_s=_SHUTDOWN_S,
        health_check_period_s=2,
        logging_config=_LOGGING,
        **scaling,
    )
    return deployment.bind(settings)


def deploy(settings: Settings, server: type[ModelServer] | None = None) -> None:
    """Start replicas, and return when they serve; arguments as for `application`.

    Raises:
        ModelError: The models cannot be loaded, or Ray has no room for the replicas.
    """
    from ray import serve

    _check_room(settings)
    deployed = application(vars(settings), server)
    try:
        _patiently(lambda: serve.run(deployed, name=APPLICATION, route_prefix="/"))
    except (RuntimeError, TimeoutError) as error:
        raise ModelError(f"the models are not served: {_reason(APPLICATION) or error}") from error


def _check_room(settings: Settings) -> None:
    """Refuse what this machine will never have, which Serve would wait for without a word. Nodes may still join a cluster."""
    import ray

    if _address() != "local":
        return
    found = ray.cluster_resources()
    for name, each, hint in (("CPU", settings.cpus, _CPU_HINT), ("GPU", settings.gpus, _GPU_HINT)):
        needed, there = settings.replicas * each, found.get(name, 0)
        if needed > there + _ROUNDING:
            what = f"--replicas {settings.replicas} with {each:g} {name} each"
            raise ModelError(f"Ray finds {there:g} {name} here", where=what, expected=f"{needed:g}", hint=hint)


def stop(folder: str) -> None:
    """Let requests end, for 30 s at most, and stop Serve, and Ray where it was started here; the argument is as for `start_ray`."""
    import ray

    if ray.is_initialized() and not _dead_processes():
        _stop_serve()
    ray.shutdown(wait_for_processes=True)
    _kill_haproxy(folder)


def _stop_serve() -> None:
    """Stop Serve, if it was started.

    Serve's own function for it kills HAProxy first, with all requests on their way. And it waits in a call of the controller, which ends
    by killing itself: Ray then prints that the call has failed, and is going to be made again.
    """
    import ray
    from ray import serve
    from ray.serve._private.constants import SERVE_CONTROLLER_NAME, SERVE_NAMESPACE

    try:
        controller: Any = ray.get_actor(SERVE_CONTROLLER_NAME, SERVE_NAMESPACE)
        serve.delete(APPLICATION)
        ray.get(controller.graceful_shutdown.remote(wait=False), timeout=_SOON_S)
        end = time.monotonic() + _SOON_S
        while time.monotonic() < end:
            ray.get_actor(SERVE_CONTROLLER_NAME, SERVE_NAMESPACE)
            time.sleep(0.05)
    except ValueError:  # there is no such actor: it was not started, or has ended
        pass
    except (ray.exceptions.RayError, TimeoutError) as error:
        logger.warning("Ray Serve does not end in order: %s", error)


def check_ray() -> None:
    """Look whether what was started here of Ray still runs.

    Raises:
        ModelError: A process has died. Nothing else tells, and nothing answers requests.
    """
    dead = _dead_processes()
    if dead:
        hint = "see the logs in /tmp/ray, and start the server again"
        raise ModelError(f"a process of Ray's has died: {', '.join(dead)}", where="serve", hint=hint)


def _dead_processes() -> list[str]:
    """Return what has died of Ray that was started here, without which nothing ends in order either."""
    from ray._private import worker

    node: Any = worker._global_node  # noqa: SLF001 - Ray has no other way to ask
    return [] if node is None else [name for name, _ in node.dead_processes() if name in ("raylet", "gcs_server")]


def _kill_haproxy(folder: str) -> None:
    """Kill HAProxy, which stays on its port where the process of Ray's that has started it dies."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # others' processes, and those that have ended meanwhile
            if f"{folder}/".encode() in file.read_bytes():
                os.kill(int(file.parent.name), signal.SIGKILL)


@contextmanager
def _in_groups_of_their_own() -> Iterator[None]:
    """Have the processes that Ray starts in groups of their own: a signal to this one's, as of a shell or `timeout`, is not for them."""
    from ray._private import services

    popen: Any = services.ConsolePopen
    services.ConsolePopen = functools.partial(popen, process_group=0)  # Ray has no setting for it
    try:
        yield
    finally:
        services.ConsolePopen = popen


def _patiently(start: Callable[[], object]) -> None:
    """Start something of Serve, which goes on with what it has begun when it is asked again."""
    end = time.monotonic() + _STARTED_S
    while True:
        try:
            start()
        except TimeoutError:
            if time.monotonic() > end:
                raise
        else:
            return


def _reason(application: str) -> str:
    """Why an application is not running, as the last line of what Serve tells of it."""
    from ray import serve

    found = serve.status().applications.get(application)
    texts = [one.message for one in found.deployments.values()] if found else []
    lines = [line for text in texts for line in text.splitlines() if "Error" in line]
    return lines[-1].strip() if lines else ""


def _own_ports() -> dict[str, int]:
    """Return ports for proxies and replicas that no other server on this machine has.

    With Ray's own ones, two servers have one port for gRPC together, and a client gets to either. Ray 2.60 means to refuse that
    (``grpc.so_reuseport``), but gives a text where gRPC reads a number. All are below those that the system gives to whoever asks for
    any, which may be taken again before they are used.
    """
    blocks = range(_PORTS.start, _PORTS.stop, 2 * _BLOCK)
    first = os.getpid() % len(blocks)
    for http in (*blocks[first:], *blocks[:first]):
        grpc = http + _BLOCK
        if all(map(_is_free, (*range(http, http + _PROBED), *range(grpc, grpc + _PROBED)))):
            ports = {
                "HAPROXY_METRICS": http,
                "HAPROXY_STATS": http + 1,
                "FALLBACK_PROXY_HTTP": http + 2,
                "DIRECT_INGRESS_MIN_HTTP": http + 3,
                "DIRECT_INGRESS_MAX_HTTP": grpc - 1,
                "FALLBACK_PROXY_GRPC": grpc,
                "DIRECT_INGRESS_MIN_GRPC": grpc + 1,
                "DIRECT_INGRESS_MAX_GRPC": grpc + _BLOCK - 1,
            }
            return {f"RAY_SERVE_{name}_PORT": port for name, port in ports.items()}
    raise ModelError(
        "no free ports for proxies and replicas", expected=f"some from {_PORTS.start} to {_PORTS.stop - 1}"
    )


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET6 if socket.has_ipv6 else socket.AF_INET) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True
