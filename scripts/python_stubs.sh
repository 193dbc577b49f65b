#!/bin/sh
# Makes the Python stubs of the Generate API in a folder, for clients such as
# docs/examples/generate.py.
#
# usage: scripts/python_stubs.sh FOLDER
set -eu

if [ $# -ne 1 ] || [ -z "$1" ]; then
  echo "usage: scripts/python_stubs.sh FOLDER" >&2
  exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/../proto"
plugin=$(command -v grpc_python_plugin) || {
  echo "python_stubs: grpc_python_plugin is missing:" \
    "apt-get install protobuf-compiler-grpc" >&2
  exit 1
}
protoc --python_out="$folder" --grpc_python_out="$folder" \
  --plugin=protoc-gen-grpc_python="$plugin" farkv/worker/v1/*.proto
