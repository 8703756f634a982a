#!/usr/bin/env bash
# bench/gpu/table.sh CARRIED [BUILD]: on a machine with an NVIDIA GPU, build the runtime, then check and time the programs that
# bench/carried.py packed (--target sm_90), each beside PyTorch's ways to run its model.
set -euo pipefail
carried=$(realpath "$1") build=${2:-/tmp/hipdnn-mlir-gpu}
root=$(cd "$(dirname "$0")/../.." && pwd)
bash "$root/bench/build_runtime.sh" "$build" "$build-site" -DUSE_HIPDNN=OFF -DHIPDNN_MLIR_WERROR=OFF
PYTHONPATH=$build-site${PYTHONPATH:+:$PYTHONPATH} python3 "$root/bench/gpu/run.py" "$carried" --autotune 16 --pytorch --steps 200
