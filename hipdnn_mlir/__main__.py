"""``python -m hipdnn_mlir``: the command ``hipdnn-mlir``."""

from hipdnn_mlir_runtime.cli.main import main

main()
