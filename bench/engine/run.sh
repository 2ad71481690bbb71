#!/bin/sh
# Prefill and decode of our engine beside llama.cpp on the same file, in one interleaved run.
# The first run fetches and builds llama.cpp (about ten minutes on two cores).
# QUICK=1: fewer cases, one round. THREADS (default 2), ROUNDS (default 3).
set -eu
cd "$(dirname "$0")/../.."
build=build/release-bench
[ -f "$build/build.ninja" ] ||
  cmake --preset release -B "$build" -DHIDANE_BENCH=ON -DHIDANE_TESTS=OFF >/dev/null
ninja -C "$build" model_bench roofline >"$build/build.log" 2>&1 || { tail -n 40 "$build/build.log" >&2; exit 1; }
tools/fetch_model.sh >/dev/null
bench/engine/llama_cpp.sh build/bench/llama.cpp models/SmolLM2-135M-Instruct.Q4_1.gguf
exec python3 bench/engine/run.py --ours "$build/src/model/model_bench" \
  --roofline "$build/bench/roofline" --theirs build/bench/llama.cpp \
  --json build/bench/engine.json --threads "${THREADS:-2}" \
  --rounds "${ROUNDS:-3}" ${QUICK:+--quick}
