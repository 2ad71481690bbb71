#!/bin/sh
# What becomes of a policy's victims: eight mechanisms on the same ones. Needs nothing but the tree.
set -eu
cd "$(dirname "$0")/../.."
build=build/release-bench
[ -f "$build/build.ninja" ] ||
  cmake --preset release -B "$build" -DHIDANE_BENCH=ON -DHIDANE_TESTS=OFF >/dev/null
ninja -C "$build" vtoken_bench >"$build/build.log" 2>&1 || { tail -n 40 "$build/build.log" >&2; exit 1; }
HIDANE_COMMIT=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
export HIDANE_COMMIT
mkdir -p build/bench
exec "$build/bench/vtoken/vtoken_bench" --json build/bench/vtoken.json ${QUICK:+--quick}
