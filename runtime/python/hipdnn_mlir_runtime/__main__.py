"""``python -m hipdnn_mlir_runtime``: the command ``hipdnn-mlir``."""

from .cli.main import main

main()
