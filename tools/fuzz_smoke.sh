#!/bin/sh
# Each fuzz target: its corpus, then SECONDS (default 20) of fuzzing:  tools/fuzz_smoke.sh [SECONDS]
# A crash leaves its input in build/fuzz/crashes/ and fails.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-20}
tools/build.sh fuzz
mkdir -p build/fuzz/crashes
ran=0
failed=0
for target in $(find build/fuzz -name '*_fuzz' -type f -perm -u+x | sort); do
  name=$(basename "$target" _fuzz)
  work=build/fuzz/corpus/$name
  mkdir -p "$work" "fuzz/corpus/$name"
  log=build/fuzz/$name.log
  if "$target" -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2048 \
      -artifact_prefix=build/fuzz/crashes/"$name"- "$work" "fuzz/corpus/$name" >"$log" 2>&1; then
    echo "fuzz $name: $(grep -c . "$log") log lines, $(grep -oE 'Done [0-9]+ runs' "$log")"
  else
    failed=$((failed + 1))
    echo "fuzz $name: FAILED (log: $log)"
    grep -E 'ERROR|SUMMARY|Test unit written' "$log" | head -n 5
  fi
  ran=$((ran + 1))
done
echo "$((ran - failed)) passed, $failed failed"
[ "$failed" = 0 ] && [ "$ran" -gt 0 ]
