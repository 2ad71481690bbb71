#!/bin/sh
# Configures when needed and builds:  tools/build.sh PRESET [TARGET...]
# Quiet when there is nothing to do; on a terminal shows ninja's own progress.
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift
dir=build/$preset
log=$dir/configure.log
mkdir -p "$dir"
if [ ! -f "$dir/build.ninja" ]; then
  echo "hidane: configuring build/$preset"
  cmake --preset "$preset" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    echo "hidane: configuring failed (log: $log)" >&2
    exit 1
  }
fi
# ninja -n prints "no work to do" in that case; building says so only when there is some.
if [ -t 1 ]; then
  NINJA_STATUS="[%f/%t %es] " ninja -C "$dir" "$@"
else
  ninja -C "$dir" "$@" >"$dir/build.log" 2>&1 || {
    grep -E 'FAILED|error' -A 8 "$dir/build.log" | head -n 80 >&2
    echo "hidane: the build failed (log: $dir/build.log)" >&2
    exit 1
  }
fi
