#!/bin/sh
# Runs the pods of an overlay with podman, without a cluster, and checks that
# they come up, that farkvctl sees them, that a generation runs across them, and
# that neither a drained nor a killed memory node costs a request. Takes three
# minutes, and removes everything that it starts.
#
#   scripts/play_pods.sh                  deploy/k8s/overlays/cpu-demo
#   scripts/play_pods.sh --bin FOLDER     with the programs in FOLDER in place of
#                                         those in the images
#
# Wants podman, as root (pods get addresses of a bridge, and a name server is on
# its port 53), kubectl, python3-yaml, and the images of scripts/build_images.sh.
# Exit codes: 0 all shown, 1 something was not, 2 usage, 77 something that it
# wants is missing.
set -eu
from=$PWD
cd "$(dirname "$0")/.."

missing() {
  echo "skipped: $*"
  exit 77
}
bin=
while [ $# -gt 0 ]; do
  case $1 in
    --bin) [ $# -ge 2 ] || { echo "--bin wants a folder" >&2; exit 2; }
      # Relative to where it was typed.
      bin=$(cd "$from" && cd "$2" && pwd) ;;
    *) echo "usage: scripts/play_pods.sh [--bin FOLDER]" >&2; exit 2 ;;
  esac
  shift 2
done
for tool in podman kubectl python3; do
  command -v $tool >/dev/null || missing "no $tool"
done
python3 -c 'import yaml' 2>/dev/null ||
  missing "no Python module yaml (Debian: python3-yaml)"
[ "$(id -u)" -eq 0 ] || missing "not root: pods of another user have no bridge"
for image in farkv-memory-node farkv-worker; do
  podman image exists "localhost/$image" ||
    missing "no image $image: run scripts/build_images.sh first"
done

# starts_pods: whether a pod runs at all, with the present configuration; leaves
# what podman says in $said.
starts_pods() {
  name=farkv-trial-$$
  started=false
  said=$(podman pod create --name $name --network none 2>&1 &&
    podman pod start $name 2>&1) && started=true
  podman pod rm -f -t 0 $name >/dev/null 2>&1 || true
  $started
}
if ! starts_pods; then
  echo "podman starts no pod here: $said"
  CONTAINERS_CONF=$PWD/deploy/pods/containers.conf
  export CONTAINERS_CONF
  starts_pods || missing "nor with deploy/pods/containers.conf: $said"
  echo "going on with deploy/pods/containers.conf"
fi
manifests=$(kubectl kustomize deploy/k8s/overlays/cpu-demo)
# In place of this shell, so that a signal comes to it.
PYTHONDONTWRITEBYTECODE=1 exec python3 deploy/pods/play.py /dev/stdin \
  ${bin:+--bin "$bin"} <<EOF
$manifests
EOF
