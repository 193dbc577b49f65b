#!/bin/sh
# What docs/OPERATING.md shows of `farkvctl plan` is what it prints, and so is
# the plan of tests/golden/plan_reasoner.json. $1: farkvctl, $2: the source
# tree. Where a change is meant, --write as $3 writes the golden file anew.
set -u
farkvctl=$1
cd "$2" || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0

# The first fenced block that calls plan, and the one behind it.
awk -v folder="$folder" '
  /^```/ { inside = !inside; if (inside) block = ""; else if (wanted == 1) {
             printf "%s", block > (folder "/expected"); exit
           } else if (block ~ /(^|\n)farkvctl plan/) {
             printf "%s", block > (folder "/command"); wanted = 1
           }; next }
  inside { block = block $0 "\n" }' docs/OPERATING.md
for part in command expected; do
  [ -s "$folder/$part" ] || { echo "docs/OPERATING.md has no $part"; exit 1; }
done
farkvctl() { "$farkvctl" "$@"; }
. "$folder/command" >"$folder/printed" 2>&1
if ! diff -u "$folder/expected" "$folder/printed"; then
  echo "docs/OPERATING.md shows another plan than farkvctl prints (+)"
  failures=1
fi

golden=tests/golden/plan_reasoner.json
"$farkvctl" plan --model models/reasoner/config.json --tokens 4096 --batch 8 \
  --hbm 32MiB --t2-ratio 0.25 --nodes 2 --device cpu --weights-dtype bf16 \
  --hbm-bandwidth 10GB/s --map-bandwidth 10GB/s --ddr 8GB/s --flops 100GFLOPS \
  --link 1Gb --rtt 150us --overhead 100us -o json >"$folder/json" 2>&1
[ "${3:-}" = --write ] && cp "$folder/json" "$golden"
if ! diff -u "$golden" "$folder/json"; then
  echo "$golden differs from what farkvctl prints (+)"
  failures=1
fi
exit "$failures"
