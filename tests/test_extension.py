"""What packages outside add: passes, patterns, operators; with the example of docs/extending.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser
from torch_mlir import ir
from torch_mlir.dialects import torch

import hipdnn_mlir
from commands import run_in_fork
from custom_ops import register_sort_rows
from hipdnn_mlir import extension
from hipdnn_mlir.frontend.decompositions.table import DECOMPOSITIONS
from hipdnn_mlir.frontend.own_operators import RESULTS
from hipdnn_mlir.ir.module_pass import PASSES
from hipdnn_mlir.ops.table import rows
from hipdnn_mlir_runtime.errors import DeviceError, HipdnnMlirError, ModelError, UnsupportedError

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "extension"


@pytest.fixture(scope="module", autouse=True)
def _acme() -> Iterator[None]:
    """The example, loaded as the command line loads it; what it registers is gone afterwards."""
    sys.path.insert(0, str(EXAMPLE))
    before = os.environ.get(extension.VARIABLE)
    changed = (rows(), PASSES, DECOMPOSITIONS, RESULTS)
    tables: list[tuple[dict[Any, Any], dict[Any, Any]]] = [(table, dict(table)) for table in changed]
    extension.load_extensions(["acme"])
    register_sort_rows()
    yield
    sys.path.remove(str(EXAMPLE))
    del sys.modules["acme"]
    if before is None:
        del os.environ[extension.VARIABLE]
    for table, entries in tables:
        table.clear()
        table.update(entries)


def model(text: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21, "acme" : 1]>\n{text}')


def floats(*dims: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(dims).astype(np.float32)


def test_pattern_takes_part_in_every_compilation(tmp_path: Path) -> None:
    proto = model("g (float[4,3] x) => (float[4,3] y) <float four = {4.0}> { r = Relu(x) y = Div(r, four) }")
    session = hipdnn_mlir.compile(proto, dump_ir=tmp_path).session()
    x = floats(4, 3)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], np.maximum(x, 0) / 4)
    dumped = next(tmp_path.glob("*-acme-reciprocal.mlir")).read_text()
    assert "aten.div" not in dumped
    assert "aten.mul" in dumped


def test_pattern_that_refuses_leaves_the_op() -> None:
    seen = []

    @extension.pattern("acme-refusing", after="canonicalize-torch")
    def refusing(op: torch.AtenReluOp | torch.AtenNegOp) -> list[ir.Value]:
        seen.append(type(op))
        raise extension.Refusal("operand", "not known at compile time")

    proto = model("g (float[4,3] x) => (float[4,3] y) { r = Relu(x) y = Neg(r) }")
    x = floats(4, 3)
    np.testing.assert_array_equal(hipdnn_mlir.compile(proto).session().run(None, {"x": x})[0], -np.maximum(x, 0))
    assert seen == [torch.AtenNegOp, torch.AtenReluOp]


def test_operator_is_written_by_others() -> None:
    proto = model("g (float[n,3] x) => (float[n,3] y) { y = acme.SoftCap<limit=5.0>(x) }")
    session = hipdnn_mlir.compile(proto).session()
    for n in (2, 7):
        x = 10 * floats(n, 3)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], 5 * np.tanh(x / 5), rtol=1e-5, atol=1e-6)


def test_custom_operation_has_no_operands_that_are_left_out() -> None:
    for declared in ("float[2,6] y", "y"):
        with pytest.raises(UnsupportedError, match="cannot have omitted operands"):
            hipdnn_mlir.compile(model(f"g (float[2,6] x) => ({declared}) {{ y = acme.SortRows(x, , x) }}"))


@pytest.mark.parametrize("descending", [0, 1])
def test_operator_becomes_a_custom_operation(descending: int) -> None:
    text = (
        f"g (float[n,6] x) => (float[n,6] y) {{ r = Relu(x) s = acme.SortRows<descending={descending}>(r) y = Neg(s) }}"
    )
    session = hipdnn_mlir.compile(model(text)).session()
    for n in (4, 9):
        x = floats(n, 6)
        want = np.sort(np.maximum(x, 0), axis=-1)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], -(want[:, ::-1] if descending else want))
    assert [step["summary"] for step in session.steps] == ["relu", "custom_op", "neg"]


def test_custom_operation_that_nothing_implements_is_refused_by_the_library() -> None:
    extension.custom_op("acme", "Nowhere", id="acme.nowhere")(lambda operands, attributes: operands)
    program = hipdnn_mlir.compile(model("g (float[2,6] x) => (float[2,6] y) { y = acme.Nowhere(x) }"))
    with pytest.raises(DeviceError, match=r"acme\.nowhere"):
        program.session()


def test_operator_that_nobody_registered_is_rejected() -> None:
    proto = model("g (float[2,6] x) => (float[2,6] y) { r = Relu(x) y = acme.Unknown(r) }")
    with pytest.raises((UnsupportedError, ModelError), match="Unknown"):
        hipdnn_mlir.compile(proto)


def test_registration_refuses_what_would_hide_something_else() -> None:
    with pytest.raises(HipdnnMlirError, match="'Relu' is an operator of ONNX"):
        extension.custom_op("acme", "Relu", id="x")
    with pytest.raises(HipdnnMlirError, match="registered already"):
        extension.custom_op("acme", "SortRows", id="x")
    with pytest.raises(HipdnnMlirError, match="a pass is called 'hipdnn-offload' already"):
        extension.torch_pass("hipdnn-offload", after="refine-shapes")
    with pytest.raises(HipdnnMlirError, match="no step 'soon' in the torch dialect: expected one of onnx-to-torch, "):
        extension.torch_pass("acme-other", after="soon")


PATTERN = "from torch_mlir.dialects import torch\n@extension.pattern('failing', after='canonicalize-torch')\n"
FAILING = {
    "decomposition": (
        "@extension.decomposition('failing', 'Op')\ndef write(call):\n    raise KeyError('zzz')\n",
        r"failing.py:4: an extension's decomposition of failing::Op fails: KeyError: 'zzz'; correct the extension",
    ),
    "pattern": (
        f"{PATTERN}def p(op: torch.AtenReluOp):\n    return 1 / 0\n",
        r"failing.py:5: an extension's pattern 'failing' fails: ZeroDivisionError",
    ),
    "results of a pattern": (
        f"{PATTERN}def p(op: torch.AtenReluOp | torch.AtenNegOp):\n    return 5\n",
        r"torch.aten.relu: a pattern must return a list of new results: got 5",
    ),
    "pattern for no ops": (
        f"{PATTERN}def p(op: int):\n    return None\n",
        r"the parameter of pattern 'failing' is not annotated with a class of ops: got <class 'int'>",
    ),
    "pattern for what is not there": (
        f"{PATTERN}def p(op: 'torch.AtenReluuOp'):\n    return None\n",
        r"an extension's pattern 'failing' fails: AttributeError: .*AtenReluuOp",
    ),
    "pass": (
        "@extension.torch_pass('failing', after='canonicalize-torch')\ndef p(module):\n    module.nothing()\n",
        r"failing.py:4: an extension's pass 'failing' fails: AttributeError",
    ),
    "module": ("1 / 0\n", r"failing.py:2: the extension 'failing' cannot be imported: ZeroDivisionError"),
    "syntax": ("def f(:\n", r"the extension 'failing' cannot be imported: SyntaxError: .*failing.py, line 2"),
}


@pytest.mark.parametrize("case", FAILING)
def test_failure_of_an_extension_is_the_users_with_its_line(case: str, tmp_path: Path) -> None:
    text, message = FAILING[case]
    (tmp_path / "failing.py").write_text(f"from hipdnn_mlir import extension\n{text}")
    operator = "failing.Op" if case == "decomposition" else "Relu"
    proto = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21, "failing" : 1]>\ng (float[n,3] x) => (float[n,3] y) {{ y = {operator}(x) }}'
    )
    onnx.save(proto, tmp_path / "model.onnx")
    arguments = ["--extension", "failing", "compile", "model.onnx", "--in-process"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    environment.pop(extension.VARIABLE, None)
    result = run_in_fork(arguments, tmp_path, environment)
    assert result.returncode == 2, result.stderr
    assert re.search(message, result.stderr), result.stderr
    assert "--shape" not in result.stderr


def test_command_line_imports_extensions_in_its_child_too(tmp_path: Path) -> None:
    onnx.save(model("g (float[2,3] x) => (float[2,3] y) { y = acme.SoftCap(x) }"), tmp_path / "m.onnx")
    command = [
        sys.executable,
        "-P",
        "-m",
        "hipdnn_mlir_runtime.cli.main",
        "--extension",
        "acme",
        "compile",
        "m.onnx",
        "-o",
        "m.hipdnn",
    ]
    path = os.pathsep.join([str(EXAMPLE), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop(extension.VARIABLE, None)
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "m.hipdnn").exists()
    command[5] = "no_such_extension"
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no_such_extension: the extension cannot be imported" in done.stderr
