#!/usr/bin/env bash
# Builds the package against the torch of the python3 in PATH (with its CUDA), into build/gpu, and runs bench/gpu_smoke.py there.
#   bash bench/_gpu_build.sh [--python PYTHON] [--deps DIR] [--build-only] [ARGUMENTS of gpu_smoke.py...]
# --deps: where fmt and nlohmann-json are installed, if not in the system (with CMake's config files below DIR/lib/cmake or DIR/share/cmake).
# It needs a C++20 compiler, CMake 3.25, ninja, the headers of Python and zlib, and for a CUDA build of torch the CUDA toolkit (nvcc).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=python3 deps="" run=1
while [ $# -gt 0 ]; do
  case $1 in
    --python) python=$2 && shift 2 ;;
    --deps) deps=$(cd "$2" && pwd) && shift 2 ;;
    --build-only) run=0 && shift ;;
    *) break ;;
  esac
done
python=$(command -v "$python")
python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") # the links of a virtual environment stay
jobs=$(awk -v cores="$(nproc)" '/^MemAvailable/ {j = int($2 / 1800000); if (j < 1) j = 1; print j < cores ? j : cores}' /proc/meminfo)

cmake -G Ninja -S "$root" -B "$root/build/gpu" -DCMAKE_BUILD_TYPE=Release -DHPQF_BUILD_TESTS=OFF -DHPQF_BUILD_APPS=OFF \
  -DPython3_EXECUTABLE="$python" ${deps:+-DCMAKE_PREFIX_PATH="$deps"}
cmake --build "$root/build/gpu" -j "$jobs" --target hpqf_python
[ $run = 0 ] || exec "$python" "$root/bench/gpu_smoke.py" --build-dir "$root/build/gpu" "$@"
