#!/usr/bin/env bash
# bench/build_runtime.sh BUILD SITE [CMAKE OPTIONS]: build the runtime alone, and lay out in SITE packages that import it.
# For a machine without torch-mlir and without package registries: Python with numpy, ml_dtypes and nanobind, CMake, Ninja and a C++ compiler
# are enough, with nlohmann-json and oneDNN where that Python finds them (PYTHONPATH).
set -euo pipefail
build=$1 site=$2
shift 2
root=$(cd "$(dirname "$0")/.." && pwd)
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPython_EXECUTABLE="$(command -v python3)" "$@" >"$build.log" || {
  cat "$build.log" >&2
  exit 1
}
cmake --build "$build" -- -k 0 >>"$build.log" || {
  tail -60 "$build.log" >&2
  exit 1
}
package=$site/hipdnn_mlir
mkdir -p "$package/lib"
ln -sfn "$root"/hipdnn_mlir/* "$package/"
ln -sfn "$root/third_party/hipdnn/enums.json" "$package/"
ln -sfn "$root/onnxruntime_ep_hipdnn" "$site/"
find "$build" -name '_runtime*.so' -exec ln -sfn {} "$package/" \;
find "$build" -name 'libhipdnn_*.so' -exec ln -sfn {} "$package/lib/" \;
