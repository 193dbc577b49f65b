#!/bin/sh
# Builds the images of a memory node and of a worker that computes on the CPU,
# farkv-memory-node and farkv-worker, with podman or docker, and prints their
# sizes.
#
#   scripts/build_images.sh                 compiles inside of the build
#   scripts/build_images.sh --bin FOLDER    takes the programs in FOLDER, which
#                                           were built on Debian 12
#   --engine podman|docker   the one that is there, podman first
#   --base IMAGE             Debian 12; default: debian:bookworm-slim
#   --mmdebstrap             makes that image out of Debian's packages, as
#                            localhost/debian:bookworm-slim, and asks no
#                            registry; as root, with mmdebstrap
#   --tag TAG                default: latest
#
# FARKV_JOBS: compilers at once (default: 2). FARKV_BUILD_FLAGS: further flags
# of `podman build`, such as --network=host.
set -eu
from=$PWD
cd "$(dirname "$0")/.."

usage() {
  sed -n '2,/^set -eu/s/^# \{0,1\}//p' scripts/build_images.sh >&2
  exit 2
}
fail() {
  echo "build_images: $*" >&2
  exit 1
}
bin=
engine=
base=debian:bookworm-slim
bootstrap=false
tag=latest
while [ $# -gt 0 ]; do
  case $1 in
    --mmdebstrap) bootstrap=true; shift; continue ;;
    --bin|--engine|--base|--tag) [ $# -ge 2 ] || usage ;;
    *) usage ;;
  esac
  case $1 in
    # Relative to where it was typed.
    --bin) bin=$(cd "$from" && cd "$2" && pwd) ;;
    --engine) engine=$2 ;;
    --base) base=$2 ;;
    --tag) tag=$2 ;;
  esac
  shift 2
done
if [ -z "$engine" ]; then
  engine=$(command -v podman || command -v docker) ||
    fail "neither podman nor docker is here"
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/farkv-images-XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

if $bootstrap; then
  command -v mmdebstrap >/dev/null || fail "apt-get install mmdebstrap first"
  base=localhost/debian:bookworm-slim
  echo "== $base, out of Debian's packages"
  # Without what nobody reads in an image, and without package lists.
  # shellcheck disable=SC2016 # the hook expands it
  mmdebstrap --quiet --variant=minbase \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/*' \
    bookworm "$dir/debian.tar"
  "$engine" import "$dir/debian.tar" "$base" >/dev/null
  rm "$dir/debian.tar"
fi

if [ -n "$bin" ]; then
  mkdir "$dir/out"
  for program in farkv-memory-node farkv-worker farkvctl; do
    strip -o "$dir/out/$program" "$bin/$program"
  done
fi
# build NAME DOCKERFILE
build() {
  echo "== $1:$tag"
  # shellcheck disable=SC2086 # flags, or none
  "$engine" build ${FARKV_BUILD_FLAGS:-} \
    ${bin:+"--build-context=build=$dir"} \
    --build-arg "DEBIAN=$base" --build-arg "JOBS=${FARKV_JOBS:-2}" \
    -f "deploy/images/$2.Dockerfile" -t "$1:$tag" . >"$dir/$1.log" 2>&1 ||
    { cat "$dir/$1.log" >&2; fail "no image $1"; }
}
build farkv-memory-node node
build farkv-worker worker-cpu
"$engine" images --filter "reference=farkv-*:$tag"
