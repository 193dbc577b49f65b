#!/bin/sh
# Builds and runs the tests.
#
#   scripts/test.sh         release build, every test
#   scripts/test.sh --fast  release build, unit and conformance tests only
#   scripts/test.sh --all   every test, then unit, conformance and model tests
#                           under AddressSanitizer and UBSan, then the tests
#                           labelled tsan under ThreadSanitizer, and a part
#                           of the presets debug and fuzz
#
# FARKV_JOBS sets the number of parallel jobs (default: 2).
set -eu
cd "$(dirname "$0")/.."

mode=${1:-default}
case $mode in
  default|--fast|--all) ;;
  *) echo "usage: scripts/test.sh [--fast|--all], not \"$mode\"" >&2; exit 2 ;;
esac
jobs=${FARKV_JOBS:-2}

# build PRESET TARGET: configures build/PRESET and builds one target in it.
build() {
  launcher=
  if command -v ccache >/dev/null; then
    launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi
  echo "== $1: configure and build $2"
  cmake --preset "$1" $launcher >"build/$1-configure.log" 2>&1 || {
    cat "build/$1-configure.log"
    exit 1
  }
  began=$(date +%s)
  cmake --build "build/$1" --target "$2" -j "$jobs"
  echo "== $1: built $2 in $(($(date +%s) - began)) s"
}

# run PRESET [CTEST ARGUMENT...]
run() {
  preset=$1
  shift
  echo "== $preset: run tests"
  began=$(date +%s)
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error \
    -j "$jobs" "$@"
  echo "== $preset: ran its tests in $(($(date +%s) - began)) s"
}

./scripts/setup.sh
mkdir -p build

if [ "$mode" = --fast ]; then
  build release farkv_tests_fast
  run release -L '^(unit|conformance)$' -LE '^bench$'
  exit 0
fi

build release all
run release
if [ "$mode" = --all ]; then
  build asan farkv_tests_asan
  run asan -L '^(unit|conformance|model)$' -LE '^bench$'
  build tsan farkv_tests_tsan
  run tsan -L '^tsan$' -LE '^bench$'
  # Nothing else configures these presets: a part of each must build.
  build debug base_test
  build fuzz page_header_fuzz
fi
echo "== all done"
