"""Errors are one line, keep their class across processes, and know their exit code."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from hipdnn_mlir_runtime.errors import (
    DeviceError,
    HipdnnMlirError,
    ModelError,
    PassError,
    ProgramError,
    Reject,
    UnsupportedError,
    WrongTargetError,
    error_from_dict,
)

REJECTS = [
    Reject("Foo", "no-row", "no hipDNN operation computes it", "n1"),
    Reject("Foo", "no-row", "no hipDNN operation computes it", "n2"),
    Reject("Conv", "dtype", "expected f32, got i32"),
]
ERRORS = [
    ModelError("wrong dims", where="x", expected="f32[1,3]", got="f32[3]", hint="reshape it"),
    ProgramError("truncated", where="a.hipdnn"),
    DeviceError("hipMalloc: out of memory"),
    PassError("failed", pass_name="offload", earlier=["import"], reproducer=Path("r"), detail="a\nb"),
    UnsupportedError(REJECTS, target="host", where="m.onnx"),
    WrongTargetError("program.target: compiled for 'gfx942', port 'cuda' runs 'sm_90'"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_error_is_the_same_when_sent_as_json(error: HipdnnMlirError) -> None:
    received = error_from_dict(json.loads(json.dumps(error.to_dict())))
    assert type(received) is type(error)
    assert str(received) == str(error)
    assert vars(received) == vars(error)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_error_is_the_same_when_pickled(error: HipdnnMlirError) -> None:
    received = pickle.loads(pickle.dumps(error))
    assert type(received) is type(error)
    assert str(received) == str(error)


def test_message_names_what_where_expected_got_and_next_step_when_all_are_given() -> None:
    assert str(ERRORS[0]) == "x: wrong dims: expected f32[1,3], got f32[3]; reshape it"


def test_message_is_one_line_when_a_library_gave_several() -> None:
    assert str(DeviceError("first\n  second\n")) == "first second"


def test_pass_error_names_pass_predecessors_and_reproducer_when_known() -> None:
    text = str(ERRORS[3])
    assert text.startswith("pass offload after import: failed")
    assert text.endswith("reproducer: r")


def test_unsupported_error_lists_every_reject_when_some_are_alike() -> None:
    text = str(ERRORS[4])
    assert "3 nodes" in text
    assert "Foo at 'n1', 'n2': no hipDNN operation computes it [no-row]" in text
    assert "Conv: expected f32, got i32 [dtype]" in text
    assert UnsupportedError(REJECTS[:1]).rejects == (REJECTS[0],)


def test_exit_code_is_3_only_when_the_compiler_is_at_fault() -> None:
    assert [error.exit_code for error in ERRORS] == [2, 2, 2, 3, 2, 2]
