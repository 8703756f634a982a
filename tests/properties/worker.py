"""Compiles and runs models in a process of its own: what kills it is the failure of one model, which hypothesis then shrinks."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection

import onnx
import pytest

import hipdnn_mlir
from hipdnn_mlir_runtime.errors import ModelError, UnsupportedError

from .call import Array

TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Rejected:
    """A model that the compiler refuses.

    Attributes:
        reasons: What the error says.
    """

    reasons: str


class Worker:
    """One process, started again where a model kills or hangs it. Used by one thread."""

    def __init__(self) -> None:
        self._start()

    def submit(self, model: onnx.ModelProto, feeds: Mapping[str, Array]) -> None:
        """Have a model run; the result is fetched with `result`, before the next one."""
        if not self._process.is_alive():
            self._start()
        self._connection.send((model.SerializeToString(), dict(feeds)))

    def result(self) -> list[Array] | Rejected:
        """Return the outputs of the submitted model.

        Raises:
            pytest.fail.Exception: it fails in any other way than a rejection, dies or hangs.
        """
        if not self._connection.poll(TIMEOUT_S):
            self.close()
            pytest.fail(f"no answer within {TIMEOUT_S:g} s")
        try:
            outcome: list[Array] | Rejected | str = self._connection.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode or 0
            name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            pytest.fail(f"the process died: {name}")
        if isinstance(outcome, str):
            pytest.fail(outcome)
        return outcome

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._connection.close()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()


def _serve(connection: Connection) -> None:
    while True:
        try:
            model, feeds = connection.recv()
        except EOFError:
            return
        connection.send(_outcome(onnx.load_from_string(model), feeds))


def _outcome(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array] | Rejected | str:
    try:
        return list(hipdnn_mlir.compile(model).session().run(None, dict(feeds)))
    except UnsupportedError as error:
        bare = [reject for reject in error.rejects if not reject.reason]
        return f"a reject without reason: {bare}" if bare or not error.rejects else Rejected(str(error))
    except ModelError as error:
        return Rejected(str(error))
    except Exception:  # noqa: BLE001 - whatever else it is, it is the failure of this model
        return traceback.format_exc()
