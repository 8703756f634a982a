"""The command `hipdnn-mlir` in a fork of a process that has imported the compiler, which costs more than most commands do."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hipdnn_mlir_runtime.errors import error_from_dict

PATIENCE_S = 300
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    ["hipdnn_mlir.cli.commands", "hipdnn_mlir.compiler.compile", "onnxruntime", "torch_mlir.dialects.linalg"]
)


def run_in_fork(arguments: Sequence[str], cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the command; where it would compile in a child, it does so itself."""
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder, "out"), Path(folder, "err")
        process = _FORKS.Process(target=_be_command, args=(arguments, cwd, dict(env), printed))
        process.start()
        process.join(PATIENCE_S)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(arguments, PATIENCE_S)
        return subprocess.CompletedProcess(arguments, process.exitcode, *(path.read_text() for path in printed))


def _be_command(arguments: Sequence[str], cwd: Path, env: Mapping[str, str], printed: Sequence[Path]) -> None:
    from hipdnn_mlir.cli import commands
    from hipdnn_mlir_runtime.cli.main import main

    for stream, path in enumerate(printed, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))  # which Python reads when it starts
    sys.argv = ["hipdnn-mlir", *arguments]
    commands.perform_in_child = _perform
    main()


def _perform(request: Any, **_: object) -> Any:
    """What the child would answer, in the words of its messages."""
    from hipdnn_mlir.service.server import answer

    reply = json.loads(answer(json.dumps(request.to_json()).encode(), ()))
    if "error" in reply:
        raise error_from_dict(reply["error"])
    return reply["result"]
