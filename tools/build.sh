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

configure() {  # configure [CMAKE ARGUMENT...]
  echo "hidane: configuring build/$preset"
  cmake --preset "$preset" "$@" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    echo "hidane: configuring failed (log: $log)" >&2
    exit 1
  }
}
# Who builds single targets of the release (./hidane) needs no test libraries; they come with the
# first build of everything.
if [ "$preset" = release ] && [ $# = 0 ]; then
  grep -qs '^HIDANE_TESTS:BOOL=ON' "$dir/CMakeCache.txt" && [ -f "$dir/build.ninja" ] ||
    configure -DHIDANE_TESTS=ON
elif [ ! -f "$dir/build.ninja" ]; then
  if [ "$preset" = release ]; then configure -DHIDANE_TESTS=OFF; else configure; fi
fi
if [ -t 1 ]; then
  NINJA_STATUS="[%f/%t %es] " ninja -C "$dir" "$@"
else
  ninja -C "$dir" "$@" >"$dir/build.log" 2>&1 || {
    grep -E 'FAILED|error' -A 8 "$dir/build.log" | head -n 80 >&2
    echo "hidane: the build failed (log: $dir/build.log)" >&2
    exit 1
  }
fi
