"""PyTorch modules as the compiler reads them: exported, decomposed to the ops of the op table, at given sizes, imported. Needs torch."""
