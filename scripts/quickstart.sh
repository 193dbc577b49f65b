#!/bin/sh
# From a fresh Debian 12 machine to a generation whose cold rows lie in another
# process: installs, builds, starts one memory node and one worker, generates,
# shows where the rows are, compares with everything in T0, stops both.
set -eu
cd "$(dirname "$0")/.."

bin=build/release/bin
model=models/reasoner
dir=$(mktemp -d "${TMPDIR:-/tmp}/farkv-quickstart-XXXXXX")
node_pid=
worker_pid=
client_pid=

stop() {
  for pid in $client_pid $worker_pid $node_pid; do
    kill -TERM "$pid" 2>/dev/null || continue
    wait "$pid" 2>/dev/null || true
  done
  client_pid= worker_pid= node_pid=
}
cleanup() {
  code=$?
  stop
  if [ "$code" -ne 0 ]; then
    echo "quickstart: failed; the logs are in $dir" >&2
    tail -n 5 "$dir"/*.log >&2 2>/dev/null || true
  else
    rm -rf "$dir"
  fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM

say() { printf '\n== %s\n' "$*"; }

# port NAME FILE: a number out of a port file.
port() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$2"; }
# field NAME FILE: a number out of the answer of farkvctl -o json.
field() { sed -n "s/.*\"$1\": \([0-9.]*\),*/\1/p" "$2" | head -n 1; }

# await FILE PID: until the program PID has written its port file.
await() {
  while [ ! -f "$1" ]; do
    kill -0 "$2" 2>/dev/null || { echo "it ended early" >&2; exit 1; }
    sleep 0.1
  done
}

say "Install and build (some minutes the first time)"
./scripts/setup.sh
mkdir -p build
launcher=
if command -v ccache >/dev/null; then
  launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
cmake --preset release $launcher >build/release-configure.log 2>&1 ||
  { cat build/release-configure.log; exit 1; }
cmake --build build/release -j "${FARKV_JOBS:-2}" --target \
  farkv-memory-node farkv-worker farkvctl farkv-bench

# start_worker NAME FLAG...: sets worker_pid and FARKV_WORKER, FARKV_WORKERS.
start_worker() {
  name=$1
  shift
  "$bin/farkv-worker" --model="$model" --listen=127.0.0.1:0 \
    --admin-listen=127.0.0.1:0 --metrics-listen=127.0.0.1:0 \
    --port-file="$dir/$name.json" "$@" >"$dir/$name.log" 2>&1 &
  worker_pid=$!
  await "$dir/$name.json" "$worker_pid"
  FARKV_WORKERS="127.0.0.1:$(port admin "$dir/$name.json")"
  FARKV_WORKER="127.0.0.1:$(port listen "$dir/$name.json")"
  export FARKV_WORKERS FARKV_WORKER
}

say "Start one memory node and one worker (HBM ratio 0.3)"
# T0 is too small for the whole context, and window and interval are scaled to
# chains of some hundred tokens.
"$bin/farkv-memory-node" --node-id=node-0 --listen=127.0.0.1:0 \
  --admin-listen=127.0.0.1:0 --metrics-listen=127.0.0.1:0 \
  --data-listen=127.0.0.1:0 --t1-bytes=512MiB --map-dir="$dir" \
  --port-file="$dir/node.json" >"$dir/node.log" 2>&1 &
node_pid=$!
await "$dir/node.json" "$node_pid"
FARKV_NODES="127.0.0.1:$(port admin "$dir/node.json")"
export FARKV_NODES
start_worker tiered --map-dir="$dir" --hbm-ratio=0.3 --t0-bytes=1344KiB \
  --granularity=16 --recent=16 --interval=16 \
  --memory-nodes="127.0.0.1:$(port listen "$dir/node.json")"
"$bin/farkvctl" get nodes

say "Generate: the built-in reasoner works through an unseen program"
head -n 1 "$model/heldout.jsonl" |
  sed 's/^{"prompt": "\([^"]*\)".*/\1/' | tr -d '\n' >"$dir/prompt.txt"
expected=$(head -n 1 "$model/heldout.jsonl" |
  sed 's/.*"answer": "\([^"]*\)".*/\1/')
echo "prompt: $(cat "$dir/prompt.txt")"
"$bin/farkvctl" generate --prompt-file "$dir/prompt.txt" \
  --max-new-tokens 450 -o json >"$dir/tiered.json"
text=$(sed -n 's/^  "text": "\(.*\)",$/\1/p' "$dir/tiered.json")
echo "output: $text"
echo "answer: ${text#*!} (expected $expected)"
echo "at the end: $(field t0Tokens "$dir/tiered.json") tokens in T0," \
  "$(field t1Tokens "$dir/tiered.json") in T1;" \
  "attention read $(field coldRowsRead "$dir/tiered.json") cold rows"

say "Where the rows of a running sequence are"
"$bin/farkvctl" generate --prompt-file "$dir/prompt.txt" --request-id demo \
  --hbm-ratio 0 --ignore-eos --max-new-tokens 6000 >/dev/null 2>&1 &
client_pid=$!
tries=0
until "$bin/farkvctl" get sequences -o json >"$dir/sequences.json" &&
  [ "$(field t1Tokens "$dir/sequences.json")" -gt 100 ] 2>/dev/null; do
  tries=$((tries + 1))
  [ "$tries" -lt 300 ] || { echo "no sequence with cold rows" >&2; exit 1; }
  sleep 0.1
done
"$bin/farkvctl" get sequences
"$bin/farkvctl" get pools
"$bin/farkvctl" describe sequence demo | cut -c1-110
# Closing its stream cancels a request.
kill "$client_pid" 2>/dev/null || true
wait "$client_pid" 2>/dev/null || true
client_pid=

say "The same prompt with everything in T0 (a worker without memory nodes)"
kill -TERM "$worker_pid"
wait "$worker_pid"
start_worker full --t0-bytes=64MiB
"$bin/farkvctl" generate --prompt-file "$dir/prompt.txt" \
  --max-new-tokens 450 -o json >"$dir/full.json"
echo "cold rows read: $(field coldRowsRead "$dir/full.json")"
for run in tiered full; do
  sed -n '/"text"/,/"finishReason"/p' "$dir/$run.json" >"$dir/$run.output"
done
if [ "$(field coldRowsRead "$dir/tiered.json")" -eq 0 ]; then
  echo "NOT SHOWN: the tiered run read no cold row"
  exit 1
fi
if cmp -s "$dir/tiered.output" "$dir/full.output"; then
  echo "IDENTICAL: every token of both outputs is the same"
else
  echo "DIFFERENT: the two outputs are not the same"
  exit 1
fi

say "Stop"
stop
echo "worker and node have stopped; next: ./scripts/test.sh"
