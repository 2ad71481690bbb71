#!/bin/sh
# What becomes of a policy's victims: eight mechanisms on the same ones. Needs nothing but the tree.
# MODEL=models/NAME.gguf: the shipped policies on that model too, and what becomes of its answers on
# TEXT (default: the documents here). Many minutes; a few with QUICK=1.
set -eu
cd "$(dirname "$0")/../.."
build=build/release-bench
[ -f "$build/build.ninja" ] ||
  cmake --preset release -B "$build" -DHIDANE_BENCH=ON -DHIDANE_TESTS=OFF >/dev/null
ninja -C "$build" vtoken_bench >"$build/build.log" 2>&1 || { tail -n 40 "$build/build.log" >&2; exit 1; }
HIDANE_COMMIT=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
export HIDANE_COMMIT
mkdir -p build/bench
set -- --json build/bench/vtoken.json ${QUICK:+--quick}
if [ -n "${MODEL:-}" ]; then
  text=${TEXT:-build/bench/vtoken_text.txt}
  [ -n "${TEXT:-}" ] || cat docs/*.md >"$text"
  set -- "$@" --model "$MODEL" --text "$text"
fi
exec "$build/bench/vtoken/vtoken_bench" "$@"
