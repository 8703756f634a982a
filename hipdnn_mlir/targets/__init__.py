"""What the engines of each target take and cost, as data. Knows graphs of hipDNN operations, no MLIR."""
