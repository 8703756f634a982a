"""lit configuration: every `.mlir` file is a test; tools come from beside the interpreter that runs lit, then from PATH."""

# `config` is lit's own; this file runs inside it.
import os
import sys
from pathlib import Path

import lit.formats

here = Path(__file__).parent
config.name = "hipdnn-mlir"  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = str(here)  # noqa: F821
config.test_exec_root = str(here.parent / "build" / "lit")  # noqa: F821
config.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # noqa: F821
