#!/bin/sh
# clang-tidy 19 on the .cc files changed since BASE (default: ten commits back, or all if fewer).
set -eu
cd "$(dirname "$0")/.."
base=${1:-$(git rev-list -n 1 HEAD~10 2>/dev/null || true)}
if [ -n "$base" ]; then
  files=$(git diff --name-only --diff-filter=d "$base" -- 'src/*.cc' | grep -vE '_(test|bench)\.cc$' || true)
else
  files=$(git ls-files 'src/*.cc' | grep -vE '_(test|bench)\.cc$')
fi
[ -n "$files" ] || { echo "tidy: no changed files"; exit 0; }
cmake --preset tidy >/dev/null
# shellcheck disable=SC2086  # a list of files
echo $files | tr ' ' '\n' | xargs -P "$(nproc)" -n 4 clang-tidy-19 -p build/tidy --quiet \
  --warnings-as-errors='*' 2>/dev/null && echo "tidy: clean ($(echo "$files" | wc -l) files)"
