"""The hipdnn dialect, and everything that reads or builds MLIR: types, views of ops, matchers, regions, buffers.

Only this room knows how MLIR's Python bindings look; passes are written in its words.
"""
