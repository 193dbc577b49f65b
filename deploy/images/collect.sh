#!/bin/sh
# Puts together the root of an image out of a Debian that has the packages:
# programs, the libraries that they load, and nothing else - no shell, no
# package manager. Runs in a stage of the Dockerfiles.
#
#   collect.sh ROOT PROGRAM...
set -eu
root=$1
shift
libraries=/usr/lib/$(uname -m)-linux-gnu

# copy FILE: under its real path, and under the name that asks for it.
copy() {
  real=$(readlink -f "$1")
  mkdir -p "$root$(dirname "$real")"
  cp -n "$real" "$root$real"
  name=$(dirname "$real")/$(basename "$1")
  [ -e "$root$name" ] || ln -s "$(basename "$real")" "$root$name"
}

# with_libraries FILE: fails when one of them is missing.
with_libraries() {
  copy "$1"
  ldd "$1" >/tmp/ldd
  if grep "not found" /tmp/ldd >&2; then
    echo "collect: $1 lacks a library: name its package in the Dockerfile" >&2
    exit 1
  fi
  sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^\t\(\/[^ ]*\) .*/\1/p' /tmp/ldd |
    while read -r library; do copy "$library"; done
}

mkdir -p "$root/etc" "$root/tmp" "$root/usr/lib64"
chmod 1777 "$root/tmp"
for link in lib lib64 bin; do ln -s "usr/$link" "$root/$link"; done
for program in "$@"; do with_libraries "/usr/bin/$program"; done
# The loader is asked for in /lib64, which is a folder of its own.
loader=$(readlink -f /lib64/ld-linux-*.so.*)
ln -s "..${loader#/usr}" "$root/usr/lib64/$(basename /lib64/ld-linux-*.so.*)"
# Opened by name at run time: UCX's transports, providers of RDMA adapters.
for module in "$libraries"/ucx/*.so* "$libraries"/libibverbs/*.so; do
  with_libraries "$module"
done
cp -r /etc/libibverbs.d "$root/etc/"
# Of the package ncurses-base, which every Debian has: without the description
# of its terminal farkvctl top cannot draw.
cp -r /lib/terminfo "$root/usr/lib/"
echo "hosts: files dns" >"$root/etc/nsswitch.conf"
echo "farkv:x:65532:65532::/:/nonexistent" >"$root/etc/passwd"
echo "farkv:x:65532:" >"$root/etc/group"
ldconfig -r "$root"
