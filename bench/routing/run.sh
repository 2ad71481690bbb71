#!/bin/sh
# What routing costs a request. Needs the traces beside the tree, or HIDANE_TRACES, for the
# body rows; the others need nothing.
set -eu
cd "$(dirname "$0")/../.."
build=build/release-bench
[ -f "$build/build.ninja" ] ||
  cmake --preset release -B "$build" -DHIDANE_BENCH=ON -DHIDANE_TESTS=OFF >/dev/null
ninja -C "$build" routing_bench >"$build/build.log" 2>&1 || { tail -n 40 "$build/build.log" >&2; exit 1; }
HIDANE_COMMIT=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
export HIDANE_COMMIT
# As ./hidane does.
export GLIBC_TUNABLES="${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1}"
mkdir -p build/bench
exec "$build/src/routing/routing_bench" --json build/bench/routing.json ${QUICK:+--quick}
