#!/bin/sh
# Formats C++ sources with clang-format 14.
#
#   scripts/format.sh          files that differ from HEAD, new ones included
#   scripts/format.sh --all    every file
#   scripts/format.sh --check  changes nothing; fails naming files that differ
set -eu
cd "$(dirname "$0")/.."

sources() {
  grep -E '\.(h|cc|cu|cuh)$' | while read -r file; do
    if [ -f "$file" ]; then echo "$file"; fi
  done
}

case ${1:-changed} in
  changed)
    { git diff --name-only HEAD; git ls-files --others --exclude-standard; } |
      sources | xargs -r clang-format-14 -i
    ;;
  --all) git ls-files | sources | xargs -r clang-format-14 -i ;;
  --check)
    git ls-files | sources | xargs -r clang-format-14 --dry-run -Werror
    echo "format: clean"
    ;;
  *) echo "usage: scripts/format.sh [--all|--check], not \"$1\"" >&2; exit 2 ;;
esac
