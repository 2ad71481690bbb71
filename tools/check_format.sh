#!/bin/sh
# Fails on files that clang-format would change; --fix changes them.
set -eu
cd "$(dirname "$0")/.."
files=$(git ls-files --cached --others --exclude-standard -- '*.h' '*.cc' '*.c' | while read -r f; do
  [ -f "$f" ] && echo "$f"
done)
if [ "${1:-}" = --fix ]; then
  echo "$files" | xargs clang-format-19 -i
  exit 0
fi
echo "$files" | xargs clang-format-19 --dry-run -Werror 2>&1 | grep 'error:' | cut -d: -f1 | sort -u |
  {
    n=0
    while read -r f; do
      echo "not formatted: $f   (make format)"
      n=$((n + 1))
    done
    echo "format: $n file(s) to change"
    [ "$n" = 0 ]
  }
