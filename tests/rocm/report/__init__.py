"""What `make test-rocm` tells: one run on somebody's machine, as a table of causes and an archive to send.

Each suite runs in processes of its own with a time limit, and nothing is written but through `archive`, which leaves out what is private.
`python -P -m rocm.report --write FOLDER`, with `tests`, `bench` and `bench/gpu` on PYTHONPATH.
"""
