"""The table of operations: what each torch op becomes in hipDNN, used by claim, verifier, emission, docs and tests alike."""
