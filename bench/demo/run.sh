#!/bin/sh
# The demo of `hidane up` on real engines and in the simulator, in turn. Wants a quiet machine.
# QUICK=1: one round instead of five. ROUNDS, CORES.
set -eu
cd "$(dirname "$0")/../.."
build=build/release-bench
[ -f "$build/build.ninja" ] ||
  cmake --preset release -B "$build" -DHIDANE_BENCH=ON -DHIDANE_TESTS=OFF >/dev/null
ninja -C "$build" model_bench hidane >"$build/build.log" 2>&1 || { tail -n 40 "$build/build.log" >&2; exit 1; }
tools/fetch_model.sh >/dev/null
mkdir -p build/bench
[ -z "${QUICK:-}" ] || ROUNDS=1
exec python3 bench/demo/run.py --build "$build" --json build/bench/demo.json \
  --rounds "${ROUNDS:-5}" --cores "${CORES:-$(nproc)}"
