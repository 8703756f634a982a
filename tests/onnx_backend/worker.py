"""Runs named node cases one after another: after ``ready``, a name per line in and a JSON result per line out.

A case may take the process down with it; whoever feeds it starts another one. Given a folder for compiled programs, cases run through ONNX
Runtime with the provider instead of standalone.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from onnx.backend.test.case.test_case import TestCase

from hipdnn_mlir_runtime.errors import HipdnnMlirError, ModelError, UnsupportedError
from onnx_backend.backend import HipdnnBackend
from onnx_backend.node_cases import node_cases
from onnx_backend.values import assert_similar, to_array

Result = dict[str, Any]


def run_case(case: TestCase) -> Result:
    """Compile and run one case; returns its status (passed, rejected, failed), with reasons by operation."""
    try:
        prepared = HipdnnBackend.prepare(case.model)
    except UnsupportedError as error:
        reasons = sorted({f"{reject.op}: {reject.reason} [{reject.rule}]" for reject in error.rejects})
        return {"status": "rejected", "reasons": reasons}
    except ModelError as error:
        return {"status": "rejected", "reasons": [f"model: {error.message}"]}
    except Exception as error:  # noqa: BLE001 - any other exception is a failure of this case
        return {"status": "failed", "reasons": [f"compile: {_text(error)}"]}
    try:
        for inputs, expected in case.data_sets:
            outputs = prepared.run([to_array(value) for value in inputs])
            _assert_similar(case, outputs, [to_array(value) for value in expected])
    except Exception as error:  # noqa: BLE001 - as above
        return {"status": "failed", "reasons": [f"run: {_text(error)}"]}
    return {"status": "passed", "reasons": []}


def _assert_similar(case: TestCase, outputs: Sequence[Any], expected: Sequence[Any]) -> None:
    assert_similar(outputs, expected, case.rtol, case.atol)


def _text(error: Exception) -> str:
    name = type(error).__name__
    return (
        f"{name}: {' '.join(str(error).split())[:1000]}"
        if not isinstance(error, HipdnnMlirError)
        else f"{name}: {error}"
    )


def main() -> None:
    """Serve case names until standard input ends."""
    warnings.filterwarnings("ignore")
    # Libraries print on descriptor 1; results go to a private copy of it.
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    cases = node_cases()
    run = _through_onnxruntime(Path(sys.argv[1])) if len(sys.argv) > 1 else run_case
    results.write("ready\n")
    results.flush()
    for line in sys.stdin:
        results.write(json.dumps(run(cases[line.strip()])) + "\n")
        results.flush()


def _through_onnxruntime(cache_dir: Path) -> Callable[[TestCase], Result]:
    from onnx_backend.through_onnxruntime import CaseRunner

    return lambda case: CaseRunner(case, cache_dir, partial(_assert_similar, case)).run()


if __name__ == "__main__":
    main()
