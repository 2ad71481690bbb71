#!/bin/sh
# Prints the path of an nvcc: the one in PATH or CUDA_HOME, else one from PyPI (130 MB, kept in
# build/nvcc).
set -eu
cd "$(dirname "$0")/.."
for found in "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" "$(command -v nvcc || true)"; do
  [ -x "$found" ] && { echo "$found"; exit 0; }
done
if [ ! -x build/nvcc/nvidia/cu13/bin/nvcc ]; then
  [ "${HIDANE_OFFLINE:-0}" != 1 ] || { echo "fetch_nvcc: HIDANE_OFFLINE=1 and no nvcc here" >&2; exit 3; }
  python3 -m pip install --quiet --root-user-action=ignore --disable-pip-version-check --target build/nvcc \
    nvidia-cuda-nvcc==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6 >&2
fi
echo "$PWD/build/nvcc/nvidia/cu13/bin/nvcc"
