#!/usr/bin/env bash
# make bench-router_cost: what a proxy costs a request. QUICK=1: under two minutes.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
"$root/tools/build.sh" release hidane router_cost_stub
exec python3 "$root/bench/router_cost/run.py" --build "$root/build/release" "$@"
