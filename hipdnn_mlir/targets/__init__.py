"""What the engines of each target take, and what work costs there. Knows graphs of hipDNN operations, no MLIR."""
