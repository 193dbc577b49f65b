#!/bin/sh
# The exactness bench must notice a flipped bit when checks are off, and say
# that logits differ ("not exact"; a case that read nothing ends it too): runs
# "$1 exactness --corrupt-one-row" on model $2 and fails if that succeeds.
set -u
output=$("$1" exactness --model "$2" --sampled --tokens 256 \
  --corrupt-one-row 2>&1)
code=$?
echo "$output"
if [ "$code" -ne 1 ]; then
  echo "exit code $code; a corrupted row must end it with 1" >&2
  exit 1
fi
# A bit of an exponent may make logits that are no numbers.
case $output in
  *"not exact"* | *"are not finite"*) ;;
  *) echo "it failed for another reason than differing logits" >&2; exit 1 ;;
esac
