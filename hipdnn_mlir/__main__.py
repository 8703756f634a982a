"""``python -m hipdnn_mlir``: the command ``hipdnn-mlir``."""

from hipdnn_mlir_runtime.cli.entry import main

main()
