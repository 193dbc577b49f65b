#!/bin/bash
# farkv-bench decode over links of several speeds: prefetch, pushdown and auto
# against the full cache, and auto against the better of the two. With -s plan,
# predicted step times beside measured ones (farkv-bench plan).
#
#   scripts/bench_links.sh [-s decode|plan] [-r "100mbit 1gbit 10gbit"] \
#       [-b BIN_DIR] [-p] -- --model=M ...
#
# Needs root, ip and tc. Makes two network namespaces with a link between them,
# which tc's token bucket slows down to each rate in both directions, runs a node
# in one and the bench in the other, and removes all of it at the end. Node and
# bench share this machine's processors; with -p the node gets the last one of
# those that may be used, the bench the others. What follows -- goes to the
# bench: --context, --rounds, --threads, --hbm-ratio. Bench lines on stdout.
set -euo pipefail

rates="100mbit 1gbit 10gbit"
bin_dir=$(dirname "$0")/../build/release/bin
pin=
bench=decode
while getopts s:r:b:p option; do
  case $option in
    s) bench=$OPTARG ;;
    r) rates=$OPTARG ;;
    b) bin_dir=$OPTARG ;;
    p) pin=1 ;;
    *) sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
shift $((OPTIND - 1))
case $bench in
  decode) modes=prefetch,pushdown,auto ;;
  plan) modes=prefetch,pushdown ;;
  *) echo "bench_links.sh: -s is \"$bench\", must be decode or plan" >&2; exit 2 ;;
esac

id=farkv$$
node_net=$id-n
bench_net=$id-b
node_host=10.77.0.1
bench_host=10.77.0.2
work=$(mktemp -d)
node_pid=
bench_pid=

finish() {
  for pid in $bench_pid $node_pid; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" || true
  done
  ip netns del "$node_net" 2>/dev/null || true
  ip netns del "$bench_net" 2>/dev/null || true
  rm -r "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

connect() {
  ip netns add "$node_net"
  ip netns add "$bench_net"
  ip link add veth0 netns "$node_net" type veth peer name veth0 \
    netns "$bench_net"
  ip -n "$node_net" addr add $node_host/24 dev veth0
  ip -n "$bench_net" addr add $bench_host/24 dev veth0
  for net in "$node_net" "$bench_net"; do
    ip -n "$net" link set lo up
    ip -n "$net" link set veth0 up
  done
}

# Bursts of a millisecond, and no less than the largest segments that the
# kernel hands to a device at a time.
shape() {
  for net in "$node_net" "$bench_net"; do
    tc -n "$net" qdisc replace dev veth0 root tbf rate "$1" \
      burst "$2" latency 50ms
  done
}

burst_of() {
  case $1 in
    10gbit) echo 1250k ;;
    *) echo 128k ;;
  esac
}

processors() {  # all that may be used, one a line
  python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")'
}
node_run=()
bench_run=()
if [ -n "$pin" ]; then
  node_run=(taskset -c "$(processors | tail -n 1)")
  bench_run=(taskset -c "$(processors | head -n -1 | paste -sd,)")
fi

start_node() {
  rm -f "$work/ports"
  ip netns exec "$node_net" "${node_run[@]}" "$bin_dir/farkv-memory-node" \
    --node-id=links --listen=$node_host:7401 --admin-listen=127.0.0.1:0 \
    --metrics-listen=127.0.0.1:0 --data-listen=$node_host:7402 \
    --t1-bytes=1GiB --port-file="$work/ports" 2>"$work/node.log" &
  node_pid=$!
  for _ in $(seq 600); do
    if [ -s "$work/ports" ]; then return; fi
    if ! kill -0 "$node_pid" 2>/dev/null; then break; fi
    sleep 0.1
  done
  cat "$work/node.log" >&2
  echo "bench_links.sh: the node does not become ready" >&2
  exit 1
}

connect
start_node
for rate in $rates; do
  shape "$rate" "$(burst_of "$rate")"
  echo "bench_links.sh: $rate" >&2
  ip netns exec "$bench_net" "${bench_run[@]}" "$bin_dir/farkv-bench" "$bench" \
    --nodes=$node_host:7401 --modes=$modes --link="$rate" "$@" &
  bench_pid=$!  # waited for, so that a signal is answered at once
  wait $bench_pid
  bench_pid=
done
