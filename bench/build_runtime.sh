#!/usr/bin/env bash
# bench/build_runtime.sh BUILD SITE [CMAKE OPTIONS]: build the runtime alone, and lay out in SITE packages that import it.
# For a machine without torch-mlir and without package registries: Python with numpy, ml_dtypes and nanobind, CMake, Ninja and a C++ compiler
# are enough, with nlohmann-json where that Python finds it (PYTHONPATH). The host port is built where it finds oneDNN's package as well;
# -DHIPDNN_MLIR_HOST_PORT=ON asks for it where oneDNN is the system's.
set -euo pipefail
build=$1 site=$2
shift 2
root=$(cd "$(dirname "$0")/.." && pwd)
host=ON
python3 -c "import importlib.metadata as m; m.version('onednn-devel-cpu-gomp')" 2>/dev/null || host=OFF
echo "port host: $host"
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DPython_EXECUTABLE="$(command -v python3)" -DHIPDNN_MLIR_HOST_PORT=$host \
  "$@" >"$build.log" || {
  cat "$build.log" >&2
  exit 1
}
cmake --build "$build" -- -k 0 >>"$build.log" || {
  tail -60 "$build.log" >&2
  exit 1
}
package=$site/hipdnn_mlir_runtime
mkdir -p "$package/lib"
ln -sfn "$root/hipdnn_mlir" "$site/"
ln -sfn "$root"/runtime/python/hipdnn_mlir_runtime/* "$package/"
ln -sfn "$root/third_party/hipdnn/enums.json" "$package/"
find "$build" -name '_runtime*.so' -exec ln -sfn {} "$package/" \;
find "$build" -name 'libhipdnn_*.so' -exec ln -sfn {} "$package/lib/" \;
