#!/bin/sh
# Unit tests under a sanitizer:  tools/sanitize.sh asan|tsan
#   asan  the rooms that parse outside bytes or keep books, with g++
#   tsan  the rooms that have threads, with clang
set -eu
cd "$(dirname "$0")/.."
case $1 in
  asan) rooms="base obs prompt routing admission vtoken sched sim text model net serve load gateway engine" ;;
  tsan) rooms="base obs net engine serve gateway load model" ;;
  *) echo "usage: tools/sanitize.sh asan|tsan" >&2; exit 2 ;;
esac
targets=""
labels=""
for room in $rooms; do
  ls src/"$room"/*_test.cc >/dev/null 2>&1 || continue
  targets="$targets ${room}_test"
  labels="$labels|^$room\$"
done
# shellcheck disable=SC2086  # a list of targets
tools/build.sh "$1" $targets
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=second_deadlock_stack=1:suppressions=$PWD/tools/tsan_suppressions.txt
# Tests of other rooms are not built here, so ctest is given labels.
tools/run_tests.py "build/$1" -L "${labels#|}"
