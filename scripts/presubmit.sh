#!/bin/sh
# What must pass before a change is proposed; a few minutes. Formatting, the
# repository checks (includes, sizes, room READMEs), each header on its own,
# unit and conformance tests.
set -eu
cd "$(dirname "$0")/.."

./scripts/setup.sh
./scripts/format.sh --check
python3 tests/repo/check_tree.py
./scripts/test.sh --fast
cmake --build build/release --target header_check -j "${FARKV_JOBS:-2}"
echo "== presubmit: all passed"
