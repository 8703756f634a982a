"""lit configuration: every `.mlir` file is a test; `forks` has the tools, others come from PATH."""

# `config` is lit's own; this file runs inside it.
import os
import sys
from pathlib import Path

import lit.formats

here = Path(__file__).parent
sys.path.append(str(here))
import forks  # noqa: E402 - from the folder of this file

config.name = "hipdnn-mlir"  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = str(here)  # noqa: F821
config.test_exec_root = str(here.parent / "build" / "lit")  # noqa: F821
tools = here.parent / "build" / "lit" / "bin"
config.environment[forks.SOCKET] = forks.start(tools)  # noqa: F821
config.environment["PATH"] = os.pathsep.join([str(tools), os.environ["PATH"]])  # noqa: F821
