#!/bin/sh
# quickstart.sh says IDENTICAL only of what was shown. $1: the source tree. The
# programs are stand-ins that answer as this test tells them.
set -u
root=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
failures=0

# A program: says that it is ready, and ends with $1 on SIGTERM. A worker with
# nodes is the tiered one, and has another port than the full one.
cat >"$folder/program" <<'END'
#!/bin/sh
port=12 file=
for flag; do
  case $flag in
    --port-file=*) file=${flag#*=} ;;
    --memory-nodes=*) port=11 ;;
  esac
done
case $0 in
  *node) code=$NODE_CODE; echo "$NODE_SAYS" ;;
  *) [ "$port" = 11 ] && code=$TIERED_CODE || code=$FULL_CODE ;;
esac
tail -f /dev/null &
trap 'kill $!; exit $code' TERM
echo "{\"listen\":$port,\"admin\":2,\"metrics\":3}" >"$file"
wait
END
cat >"$folder/farkvctl" <<'END'
#!/bin/sh
case $* in
  generate*json) cat "$ANSWERS/${FARKV_WORKER##*:}" ;;
  generate*) exec tail -f /dev/null ;;
  *pools*json) echo "  \"usedPages\": $USED_PAGES" ;;
  *sessions*name) printf %s "$SESSIONS" ;;
  *json) echo '  "t1Tokens": 200,' ;;
  *) echo "a table" ;;
esac
END
ln -s program "$folder/farkv-memory-node"
ln -s program "$folder/farkv-worker"
chmod +x "$folder/program" "$folder/farkvctl"

# reset: everything as it must be.
reset() {
  export ANSWERS="$folder" NODE_SAYS="ready" NODE_CODE=0 TIERED_CODE=0 \
    FULL_CODE=0 USED_PAGES=0 SESSIONS=
  for port in 11 12; do
    cold=0
    [ "$port" = 12 ] || cold=5
    cat >"$folder/$port" <<END
{
  "text": "ab!7",
  "tokenIds": [
    1,
    2
  ],
  "finishReason": "stop",
  "tiers": {
    "t0Tokens": 1,
    "t1Tokens": 3,
    "coldRowsRead": $cold,
    "recomputedTokens": 0
  }
}
END
  done
}

# expect CODE TEXT: how quickstart ends now; then everything is reset.
expect() {
  said=$(TMPDIR="$folder" "$root/scripts/quickstart.sh" --bin "$folder" 2>&1)
  got=$?
  case $said in *"$2"*) found=yes ;; *) found=no ;; esac
  if [ "$got" -ne "$1" ] || [ "$found" = no ]; then
    echo "exit code $got, expected $1 and \"$2\"; it said: $said"
    failures=$((failures + 1))
  fi
  reset
}
# change FILE SED: edits an answer.
change() { sed -i "$2" "$folder/$1"; }

reset
expect 0 "IDENTICAL"
change 12 's/ab!7/ab!8/'
expect 1 "DIFFERENT"
change 12 's/    2$/    3/'
expect 1 "DIFFERENT"
change 11 's/"coldRowsRead": 5/"coldRowsRead": 0/'
expect 1 "NOT SHOWN: the tiered run read no cold row"
change 11 '/coldRowsRead/d'
expect 1 "NOT SHOWN: the tiered run read no cold row"
change 12 's/"coldRowsRead": 0/"coldRowsRead": 2/'
expect 1 "NOT SHOWN: the run with everything in T0 read cold rows"
change 11 's/"recomputedTokens": 0/"recomputedTokens": 64/'
expect 1 "NOT SHOWN: the tiered run lost rows"
change 11 's/"text"/"output"/'
change 12 's/"text"/"output"/'
expect 1 "NOT SHOWN: the answer of the tiered run has no text"
change 11 's/"tokenIds"/"ids"/'
change 12 's/"tokenIds"/"ids"/'
expect 1 "NOT SHOWN: the answer of the tiered run has no tokenIds"
TIERED_CODE=3
expect 1 "NOT SHOWN: the tiered worker ended with a failure"
FULL_CODE=3
expect 1 "NOT SHOWN: worker or node ended with a failure"
NODE_CODE=3
expect 1 "NOT SHOWN: worker or node ended with a failure"
USED_PAGES=4
expect 1 "NOT SHOWN: the tiered worker has left pages or sessions"
SESSIONS=one
expect 1 "NOT SHOWN: the tiered worker has left pages or sessions"
NODE_SAYS="2 sessions are left behind"
expect 1 "NOT SHOWN: the worker left its sessions on the node"
exit "$failures"
