#!/bin/sh
# README.md names the subcommands that `farkv-bench --help` lists, each once.
# $1: farkv-bench, $2: the source tree.
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

"$1" --help | awk '/^Subcommands:/ { inside = 1; next }
                   inside && /^  [a-z]/ { print $1 }' | sort >"$folder/there"
# The words in backquotes of the sentence that names them.
tr '\n' ' ' <"$2/README.md" |
  grep -o '`farkv-bench --help` lists the subcommands:[^.]*\.' |
  sed 's/^[^:]*://' | grep -o '`[a-z]*`' | tr -d '`' | sort >"$folder/named"

[ -s "$folder/there" ] || { echo "farkv-bench --help lists nothing"; exit 1; }
[ -s "$folder/named" ] || { echo "README.md names no subcommand"; exit 1; }
if ! diff "$folder/there" "$folder/named"; then
  echo "README.md names other subcommands (>) than farkv-bench has (<)"
  exit 1
fi
