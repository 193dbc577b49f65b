#!/bin/sh
# Installs everything that building and testing FarKV needs, on a fresh Debian
# 12, from Debian's own packages only. Idempotent: does nothing, and needs
# neither network nor root, when every package is there.
set -eu

# A fresh machine has none of these; each is named, also where another one
# happens to depend on it.
packages="
  g++ clang-14 clang-format-14 libclang-rt-14-dev llvm-14
  cmake ninja-build pkgconf ccache git python3 ca-certificates
  libucx-dev ucx-utils
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev
  libabsl-dev libc-ares-dev libre2-dev libssl-dev zlib1g-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev
  prometheus-cpp-dev libcivetweb-dev libcurl4-openssl-dev
  libdnnl-dev ocl-icd-opencl-dev opencl-c-headers
  libhwy-dev libnuma-dev libisal-dev
  libpcre2-dev libutf8proc-dev libncurses-dev
  openssl curl iproute2 procps python3-pip python3-yaml
  python3-matplotlib python3-grpcio python3-protobuf
"
# openssl, curl, iproute2, procps: tests make certificates, ask HTTP endpoints,
# shape links and look at processes. python3-pip: scripts/fetch_model.sh.
# python3-yaml: tests/deploy. python3-matplotlib: scripts/accuracy_report.py.
# python3-grpcio, python3-protobuf: docs/examples/generate.py.

missing=
for package in $packages; do
  status=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  case $status in
    ii*) ;;
    *) missing="$missing $package" ;;
  esac
done
if [ -z "$missing" ]; then
  echo "setup: all packages are installed"
  exit 0
fi

echo "setup: installing$missing"
run=
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: run as root, or install sudo first" >&2
    exit 1
  fi
  run=sudo
fi
export DEBIAN_FRONTEND=noninteractive
$run apt-get update -q
# shellcheck disable=SC2086 # a list on purpose
$run env DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
  --no-install-recommends $missing
