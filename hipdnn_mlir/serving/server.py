"""What a replica of Ray Serve runs: all models of a server, and the two protocols."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any, cast

from ray import serve
from starlette.applications import Starlette

from hipdnn_mlir_runtime.errors import HipdnnMlirError, ModelError
from hipdnn_mlir_runtime.session.options import SessionOptions
from hipdnn_mlir_runtime.session.session import Session

from .faults import UnknownModelError
from .grpc_service import GrpcMethods
from .http import http_app
from .metrics import Metrics
from .model import PLATFORM, ServedModel
from .openai import text_routes
from .repository import ModelFile, look_for_models
from .resources import own_threads
from .settings import APPLICATION, DEPLOYMENT, Settings
from .texts import ServedTexts
from .whole_answers import send_whole_answers

logger = logging.getLogger("ray.serve")
_REPORT_S = 5


class ModelServer(GrpcMethods):
    """A replica: Ray Serve calls its ASGI application, its methods for gRPC, and `load`.

    Attributes:
        settings: How models are served.
    """

    settings: Settings

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc] # Ray Serve waits for it
        """Load all models; it gets no requests before.

        What has come onto the disk since the server was started and cannot be loaded is left out, for the version below where there is one.

        Args:
            settings: How models are served.

        Raises:
            HipdnnMlirError: What was there when the server was started cannot be loaded, or nothing can.
        """
        self.settings = settings
        self._metrics = Metrics()
        self._models: dict[str, ServedModel] = {}
        self._texts: dict[str, ServedTexts] = {}
        self._closing: set[asyncio.Task[None]] = set()
        await self._load_all()
        self._reports = asyncio.create_task(self._report())

    def __serve_build_asgi_app__(self) -> Starlette:
        """Return the application; Ray Serve asks for it when the models are loaded."""
        send_whole_answers()
        app = http_app(self)
        app.routes.extend(text_routes(self))
        return app

    def model(self, name: str, version: str = "") -> ServedModel:
        """Return the program of a name.

        Raises:
            UnknownModelError: As for `file`.
            ModelError: It is a decoder.
        """
        self.file(name, version)
        if name in self._texts:
            raise ModelError("a model of texts", where=name, hint="post to /v1/completions")
        return self._models[name]

    def text_model(self, name: str) -> ServedTexts:
        """Return the decoder of a name.

        Raises:
            UnknownModelError: There is none.
        """
        if name not in self._texts:
            raise UnknownModelError(f"no text model '{name}'", where="model", expected=", ".join(self._texts) or None)
        return self._texts[name]

    def text_models(self) -> list[str]:
        """Return the names of all decoders."""
        return [*self._texts]

    def file(self, name: str, version: str = "") -> ModelFile:
        """Return what is loaded of a model.

        Raises:
            UnknownModelError: There is none, or of another version alone.
        """
        found = self._models.get(name) or self._texts.get(name)
        if found is None:
            raise UnknownModelError(f"no model '{name}'", expected=", ".join([*self._models, *self._texts]) or None)
        if version and version != found.file.version:
            raise UnknownModelError(f"no version {version}", where=name, expected=found.file.version)
        return found.file

    def metadata(self, name: str, version: str = "") -> dict[str, Any]:
        """Return what the protocol tells of a model, and nothing of a decoder's tensors; errors as for `file`."""
        file = self.file(name, version)
        if name in self._models:
            return self._models[name].metadata()
        return {"name": name, "versions": [file.version], "platform": PLATFORM, "inputs": [], "outputs": []}

    def statistics(self, name: str = "", version: str = "") -> list[dict[str, Any]]:
        """Return the statistics of a model, or of all; errors as for `file`. They are this replica's own."""
        if name:
            self.file(name, version)
        return [model.statistics() for model in self._all() if name in ("", model.file.name)]

    def index(self) -> list[dict[str, str]]:
        """Return names and versions of all models."""
        return [{"name": model.file.name, "version": model.file.version, "state": "READY"} for model in self._all()]

    async def reload(self, name: str) -> None:
        """Have all replicas load what has changed on the disk of a model; errors as for `load`."""
        handle = serve.get_deployment_handle(DEPLOYMENT, APPLICATION)
        await self.load(name)  # an error is this replica's own
        await handle.broadcast("load", name).results_async()

    async def load(self, name: str) -> None:
        """Load what has changed on the disk of a model beside what runs, then let requests go to it, and let the others end theirs.

        Raises:
            UnknownModelError: There is no such model.
            HipdnnMlirError: As for `hipdnn_mlir.load`. What runs stays.
        """
        models, problems = await asyncio.to_thread(self._found)
        if name in problems:
            raise problems[name]
        if name not in models:
            raise UnknownModelError(f"no model '{name}'", expected=", ".join(models) or None)
        await self._load(models[name])

    def answered(self, name: str, code: int, elapsed_s: float) -> None:
        """Count a request; those of models that there are not have no name, since clients could make any."""
        model = self._models.get(name) or self._texts.get(name)
        file = model.file if model is not None else None
        self._metrics.answered(file.name if file else "", file.version if file else "", code, elapsed_s)

    def _all(self) -> list[ServedModel | ServedTexts]:
        return [*self._models.values(), *self._texts.values()]

    def _found(self) -> tuple[dict[str, ModelFile], dict[str, ModelError]]:
        return look_for_models(map(Path, self.settings.paths))

    async def _load_all(self) -> None:
        """Load programs as they are on the disk now, and those that were compiled when the server was started."""
        models, problems = await asyncio.to_thread(self._found)
        compiled = {file.name: file for file in self.settings.files if file.program}
        models = compiled | {name: file for name, file in models.items() if file.is_program or name not in compiled}
        errors: list[HipdnnMlirError] = [problem for name, problem in problems.items() if name not in models]
        for file in models.values():
            for version in (file, *file.older):
                try:
                    await self._load(version)
                    break
                except HipdnnMlirError as error:
                    if version in self.settings.files:
                        raise
                    errors.append(error)
        for reason in errors:
            logger.error("not loaded: %s", reason)
        if errors and not self._all():
            raise errors[0]

    async def _load(self, file: ModelFile) -> None:
        old: ServedModel | ServedTexts | None = self._models.get(file.name) or self._texts.get(file.name)
        if old is not None and old.file == file:
            return
        if not file.is_program:
            hint = (
                "start the server again" if file.folder else "compile it to a .hipdnn file, or start the server again"
            )
            raise ModelError("models are compiled when the server is started", where=file.source, hint=hint)
        loop, threads = asyncio.get_running_loop(), own_threads()
        if file.folder:
            self._texts[file.name] = await loop.run_in_executor(None, ServedTexts, file, self.settings, threads)
        else:
            self._models[file.name] = await loop.run_in_executor(None, self._made, file, threads)
        logger.info("%s, version %s: %s is loaded", file.name, file.version, file.path)
        if old is not None:
            self._close(old)

    def _made(self, file: ModelFile, threads: int) -> ServedModel:
        return ServedModel(file, self.open_session(file, threads), self.settings, self._metrics)

    def open_session(self, file: ModelFile, threads: int) -> Session:
        """Return what runs a model; measurements put another engine there.

        Raises:
            HipdnnMlirError: As for `hipdnn_mlir.load`.
        """
        options: dict[str, Any] = {"threads": threads, **self.settings.session}
        return Session(file.path, **cast("SessionOptions", options))

    def _close(self, model: ServedModel | ServedTexts) -> None:
        task = asyncio.create_task(model.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _report(self) -> None:
        """Tell queues and memory from time to time."""
        while True:
            for model in self._all():
                self._metrics.queued(model.file.name, model.queued)
            for device, free_bytes in await asyncio.to_thread(_free_memory):
                self._metrics.free_memory(device, free_bytes)
            await asyncio.sleep(_REPORT_S)


def _free_memory() -> list[tuple[str, int]]:
    from hipdnn_mlir_runtime.session.devices import list_devices

    rows = [row for row in list_devices() if row.port != "host" and not row.problem]
    return [(f"{row.port}:{row.ordinal}", row.free_bytes) for row in rows if row.free_bytes is not None]
