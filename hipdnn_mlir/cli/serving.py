"""The command `serve`: models behind the Open Inference Protocol, until it is stopped."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from hipdnn_mlir_runtime import _runtime
from hipdnn_mlir_runtime.cli.command import needed_compiler
from hipdnn_mlir_runtime.cli.options import session_options
from hipdnn_mlir_runtime.cli.progress import working
from hipdnn_mlir_runtime.errors import ModelError

if TYPE_CHECKING:
    from ..serving.repository import ModelFile

_MB = 10**6
_LOOK_S = 1


def serve(given: SimpleNamespace) -> int:
    """Serve models over HTTP and gRPC, by the Open Inference Protocol, until it is stopped."""
    if find_spec("ray") is None:
        raise ModelError("Ray is not installed", where="serve", hint="pip install 'hipdnn-mlir[serve]'")
    from ..serving.deployment import Listening, prepare

    listening = Listening(
        host=given.host,
        port=given.http_port,
        grpc_port=given.grpc_port,
        metrics_port=given.metrics_port,
        timeout_s=given.request_timeout_s,
        tls_cert=str(given.tls_cert.absolute()) if given.tls_cert else "",
        tls_key=str(given.tls_key.absolute()) if given.tls_key else "",
    )
    listening.check()
    prepare(listening, given.max_body_mb * _MB)
    from ..serving.repository import find_models

    return _with_programs(given, find_models(given.models), [], listening)


def _with_programs(given: SimpleNamespace, left: Sequence[ModelFile], programs: list[ModelFile], listening: Any) -> int:
    """Compile the models that are none yet, to files that are there while they are served."""
    if not left:
        return _run(given, programs, listening)
    file, *rest = left
    if file.is_program:
        return _with_programs(given, rest, [*programs, file], listening)
    options, file = _of_decoder(given, file) if file.folder else ({"model": Path(file.path)}, file)
    return needed_compiler("serve").with_program(
        SimpleNamespace(**{**vars(given), **options}),
        lambda program: _with_programs(given, rest, [*programs, file.compiled(program)], listening),
    )


def _of_decoder(given: SimpleNamespace, file: ModelFile) -> tuple[dict[str, Any], ModelFile]:
    """What the decoder of a folder is compiled with, as a running batch takes it."""
    from ..generate.config import read_config
    from ..generate.decoder import length_of
    from ..generate.model_file import ModelFile as DecoderFile
    from ..generate.paged_decoder import PAGE_ROWS
    from ..generate.tokenizer import Tokenizer
    from ..serving.chat_template import ChatTemplate
    from ..serving.texts import pages

    config = read_config(Path(file.folder))
    for read in (Tokenizer, ChatTemplate):  # what is wrong with them is told before compiling
        read(Path(file.folder))
    length = length_of(config, given.max_length)
    count = pages(given.max_running, length)
    shapes, buckets = DecoderFile(config).paged_sizes(given.target, given.max_running, length, count, PAGE_ROWS)
    sizes = {"shapes": shapes, "buckets": buckets, "page_rows": PAGE_ROWS, "last_valid": config.last_valid}
    return {"model": config.model, **sizes}, replace(file, max_length=length)


def _on_signals(ended: threading.Event, *, raises: bool) -> None:
    """Have SIGINT and SIGTERM tell that the server is to end; if asked, the first one interrupts what goes on, even if it came before."""

    def handle(*_: object) -> None:
        is_first = not ended.is_set()
        ended.set()
        if raises and is_first:
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    if raises and ended.is_set():
        raise KeyboardInterrupt


def _run(given: SimpleNamespace, files: Sequence[ModelFile], listening: Any) -> int:
    from hipdnn_mlir_runtime.session.source import read

    from ..serving import deployment
    from ..serving.settings import Settings

    programs = [read(file.path, allow_code=given.allow_code) for file in files]
    on_gpu = any(_runtime.port_for_target(program.target) != "host" for program in programs)
    settings = Settings(
        paths=tuple(str(path.absolute()) for path in given.models),
        files=tuple(files),
        replicas=given.replicas,
        max_replicas=given.max_replicas,
        gpus=float(on_gpu) if given.gpus is None else given.gpus,
        cpus=given.threads or 1,
        max_batch_size=given.max_batch_size,
        batch_wait_ms=given.batch_wait_ms,
        max_queue=given.max_queue,
        max_running=given.max_running,
        max_body_bytes=given.max_body_mb * _MB,
        session={name: value for name, value in session_options(given).items() if name != "threads"},
    )
    ended, is_serving = threading.Event(), False
    # What Ray begins it has to end: in the middle of that, an exception would be lost in it.
    _on_signals(ended, raises=False)
    with TemporaryDirectory(prefix="hipdnn-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        try:
            with working("starting", quiet=given.quiet):
                deployment.start_ray(listening, folder)
                _on_signals(ended, raises=True)  # Ray has set its own, which end the process with a trace
                deployment.start_proxies(listening)
                if not given.threads:
                    settings = replace(settings, cpus=deployment.share(max(given.replicas, given.max_replicas)))
                deployment.deploy(settings)
            scheme = "https" if listening.tls_cert else "http"
            names = ", ".join(file.name for file in files)
            sys.stdout.write(f"{scheme}://{listening.host}:{listening.port} serves {names}\n")
            sys.stdout.flush()
            is_serving = True
            while not ended.wait(_LOOK_S):
                deployment.check_ray()
        except KeyboardInterrupt:
            if not is_serving:
                raise
        finally:
            ended.set()  # signals from here on change nothing
            with working("stopping", quiet=given.quiet):
                deployment.stop(folder)
    return 0
