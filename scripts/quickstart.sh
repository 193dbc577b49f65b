#!/bin/sh
# From a fresh Debian 12 machine to a generation whose cold rows lie in another
# process: installs, builds, starts one memory node and one worker, generates,
# shows where the rows are, compares with everything in T0, stops both.
#
#   scripts/quickstart.sh                   with the built-in reasoner
#   scripts/quickstart.sh --model smollm2   chats with SmolLM2-135M-Instruct,
#                                           which is fetched first
#   scripts/quickstart.sh --tls             with a key pair for each process, of
#                                           a CA that is made for the occasion
#   scripts/quickstart.sh --bin FOLDER      with the programs in FOLDER:
#                                           installs and builds nothing
set -eu
cd "$(dirname "$0")/.."

usage() {
  echo "usage: scripts/quickstart.sh [--model reasoner|smollm2] [--tls]" \
    "[--bin FOLDER]" >&2
  exit 2
}
name=reasoner
bin=
tls=false
while [ $# -gt 0 ]; do
  if [ "$1" = --tls ]; then
    tls=true
    shift
    continue
  fi
  [ $# -ge 2 ] || usage
  case $1 in
    --model) name=$2 ;;
    --bin) bin=$2 ;;
    *) usage ;;
  esac
  shift 2
done
# What is set for programs that somebody runs by hand is not meant for these.
jobs=${FARKV_JOBS:-2}
for variable in $(env | sed -n 's/^\(FARKV_[A-Z0-9_]*\)=.*/\1/p'); do
  unset "$variable"
done
model=models/$name
# T0 is too small for the whole context, and window and interval are scaled to
# outputs of some hundred tokens.
case $name in
  reasoner) t0=1344KiB tokens=450 form= ;;
  smollm2) t0=8MiB tokens=200 form=--chat ;;
  *) usage ;;
esac
dir=$(mktemp -d "${TMPDIR:-/tmp}/farkv-quickstart-XXXXXX")
node_pid=
worker_pid=
client_pid=

# stop: ends what still runs; fails when one of them ended with a failure.
stop() {
  clean=true
  for pid in $client_pid $worker_pid $node_pid; do
    kill -TERM "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || clean=false
  done
  client_pid= worker_pid= node_pid=
  $clean
}
cleanup() {
  code=$?
  stop || true
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
not_shown() {
  echo "NOT SHOWN: $*"
  exit 1
}

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

install_and_build() {
  say "Install and build (some minutes the first time)"
  ./scripts/setup.sh
  mkdir -p build
  launcher=
  if command -v ccache >/dev/null; then
    launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi
  cmake --preset release $launcher >build/release-configure.log 2>&1 ||
    { cat build/release-configure.log; exit 1; }
  cmake --build build/release -j "$jobs" --target \
    farkv-memory-node farkv-worker farkvctl farkv-bench
  bin=build/release/bin
}
[ -n "$bin" ] || install_and_build
[ "$name" = reasoner ] || ./scripts/fetch_model.sh "$name"

# use_keys NAME: whoever is started from now on is NAME to its peers.
use_keys() {
  $tls || return 0
  FARKV_TLS_CA=$dir/certs/ca.pem
  FARKV_TLS_CERT=$dir/certs/$1.pem
  FARKV_TLS_KEY=$dir/certs/$1.key
  export FARKV_TLS_CA FARKV_TLS_CERT FARKV_TLS_KEY
}
if $tls; then
  ./scripts/make_certs.sh "$dir/certs" node worker farkvctl >"$dir/certs.log"
fi

# start_worker NAME FLAG...: sets worker_pid and FARKV_WORKER, FARKV_WORKERS.
start_worker() {
  run=$1
  shift
  use_keys worker
  "$bin/farkv-worker" --model="$model" --listen=127.0.0.1:0 \
    --admin-listen=127.0.0.1:0 --metrics-listen=127.0.0.1:0 \
    --port-file="$dir/$run.port" "$@" >"$dir/$run.log" 2>&1 &
  worker_pid=$!
  use_keys farkvctl
  await "$dir/$run.port" "$worker_pid"
  FARKV_WORKERS="127.0.0.1:$(port admin "$dir/$run.port")"
  FARKV_WORKER="127.0.0.1:$(port listen "$dir/$run.port")"
  export FARKV_WORKERS FARKV_WORKER
}

say "Start one memory node and one worker (HBM ratio 0.3)"
use_keys node
"$bin/farkv-memory-node" --node-id=node-0 --listen=127.0.0.1:0 \
  --admin-listen=127.0.0.1:0 --metrics-listen=127.0.0.1:0 \
  --data-listen=127.0.0.1:0 --t1-bytes=512MiB --map-dir="$dir" \
  --port-file="$dir/node.port" >"$dir/node.log" 2>&1 &
node_pid=$!
await "$dir/node.port" "$node_pid"
FARKV_NODES="127.0.0.1:$(port admin "$dir/node.port")"
export FARKV_NODES
# A machine that still builds may keep the node from answering for a second.
start_worker tiered --map-dir="$dir" --hbm-ratio=0.3 --t0-bytes=$t0 \
  --heartbeat=2s \
  --granularity=16 --recent=16 --interval=16 \
  --memory-nodes="127.0.0.1:$(port listen "$dir/node.port")"
"$bin/farkvctl" get nodes
if $tls; then
  # Neither a client without a key pair nor one without TLS is answered: nobody
  # could be reached, says exit code 4.
  code=0
  env -u FARKV_TLS_CERT -u FARKV_TLS_KEY "$bin/farkvctl" get nodes \
    --workers=none >"$dir/refused.log" 2>&1 || code=$?
  [ "$code" -eq 4 ] || not_shown "a client without a certificate got $code"
  code=0
  env -u FARKV_TLS_CA -u FARKV_TLS_CERT -u FARKV_TLS_KEY "$bin/farkvctl" \
    get workers --nodes=none >"$dir/refused.log" 2>&1 || code=$?
  [ "$code" -eq 4 ] || not_shown "a client without TLS got $code"
  echo "mutual TLS: a client without a key pair was refused"
fi

say "Generate across the two"
if [ "$name" = reasoner ]; then
  head -n 1 "$model/heldout.jsonl" |
    sed 's/^{"prompt": "\([^"]*\)".*/\1/' | tr -d '\n' >"$dir/prompt.txt"
  expected=$(head -n 1 "$model/heldout.jsonl" |
    sed 's/.*"answer": "\([^"]*\)".*/\1/')
else
  printf 'What is gravity? Explain it in detail.' >"$dir/prompt.txt"
  expected=
fi
echo "prompt: $(cat "$dir/prompt.txt")"
# generate FILE: the answer of the worker.
# shellcheck disable=SC2086 # $form is empty or one flag
generate() {
  "$bin/farkvctl" generate $form --prompt-file "$dir/prompt.txt" \
    --max-new-tokens "$tokens" -o json >"$1"
}
generate "$dir/tiered.json"
text=$(sed -n 's/^  "text": "\(.*\)",$/\1/p' "$dir/tiered.json")
echo "output: $text"
[ -z "$expected" ] || echo "answer: ${text#*!} (expected $expected)"
echo "at the end: $(field t0Tokens "$dir/tiered.json") tokens in T0," \
  "$(field t1Tokens "$dir/tiered.json") in T1;" \
  "attention read $(field coldRowsRead "$dir/tiered.json") cold rows," \
  "$(field recomputedTokens "$dir/tiered.json") tokens were recomputed"

say "Where the rows of a running sequence are"
# shellcheck disable=SC2086 # $form is empty or one flag
run_demo() {
  "$bin/farkvctl" generate $form --prompt-file "$dir/prompt.txt" \
    --request-id demo --hbm-ratio 0 --ignore-eos --max-new-tokens 6000 \
    >/dev/null 2>"$dir/demo.log" &
  client_pid=$!
}
run_demo
tries=0
until "$bin/farkvctl" get sequences -o json >"$dir/sequences.json" &&
  [ "$(field t1Tokens "$dir/sequences.json")" -gt 100 ] 2>/dev/null &&
  "$bin/farkvctl" get sequences >"$dir/sequences.txt" &&
  "$bin/farkvctl" get pools >"$dir/pools.txt" &&
  "$bin/farkvctl" describe sequence demo >"$dir/demo.txt" \
    2>"$dir/describe.log"; do
  tries=$((tries + 1))
  [ "$tries" -lt 300 ] || { echo "no sequence with cold rows" >&2; exit 1; }
  # It may end before it has been looked at.
  kill -0 "$client_pid" 2>/dev/null || run_demo
  sleep 0.1
done
cat "$dir/sequences.txt" "$dir/pools.txt"
cut -c1-110 "$dir/demo.txt"
# Closing its stream cancels a request.
kill "$client_pid" 2>/dev/null || true
wait "$client_pid" 2>/dev/null || true
client_pid=

say "The same prompt with everything in T0 (a worker without memory nodes)"
kill -TERM "$worker_pid"
wait "$worker_pid" || not_shown "the tiered worker ended with a failure"
worker_pid=
"$bin/farkvctl" get pools --workers=none -o json >"$dir/pools.json"
"$bin/farkvctl" get sessions --workers=none -o name >"$dir/sessions.txt"
if [ "$(field usedPages "$dir/pools.json")" -ne 0 ] ||
  [ -s "$dir/sessions.txt" ]; then
  not_shown "the tiered worker has left pages or sessions on its node"
fi
start_worker full --t0-bytes=64MiB
generate "$dir/full.json"
echo "cold rows read: $(field coldRowsRead "$dir/full.json")"
cold=$(field coldRowsRead "$dir/tiered.json")
[ "${cold:-0}" -gt 0 ] || not_shown "the tiered run read no cold row"
[ "$(field recomputedTokens "$dir/tiered.json")" = 0 ] ||
  not_shown "the tiered run lost rows and recomputed them"
[ "$(field coldRowsRead "$dir/full.json")" = 0 ] ||
  not_shown "the run with everything in T0 read cold rows"
for run in tiered full; do
  sed -n '/"text"/,/"finishReason"/p' "$dir/$run.json" >"$dir/$run.output"
  for part in text tokenIds finishReason; do
    grep -q "\"$part\"" "$dir/$run.output" ||
      not_shown "the answer of the $run run has no $part"
  done
done
if cmp -s "$dir/tiered.output" "$dir/full.output"; then
  echo "IDENTICAL: every token of both outputs is the same"
else
  echo "DIFFERENT: the two outputs are not the same"
  exit 1
fi

say "Stop"
stop || not_shown "worker or node ended with a failure"
! grep "sessions are left behind" "$dir/node.log" ||
  not_shown "the worker left its sessions on the node"
echo "worker and node have stopped; next: ./scripts/test.sh"
