"""Tests that run again as on a CPU with fewer instructions."""

import os
import subprocess
import sys

import pytest

CAP = "ONEDNN_MAX_CPU_ISA"
"""What the library reads when it is loaded: in a process of its own."""
uncapped = pytest.mark.skipif(CAP in os.environ, reason="runs the others under a cap")


def assert_passes_under_cap(file: str, cap: str) -> None:
    """All tests of a file pass where the CPU has no instructions beyond `cap`."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", file]
    done = subprocess.run(command, env=os.environ | {CAP: cap}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
