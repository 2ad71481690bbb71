#!/bin/sh
# Installs what is missing, by section of tools/packages.txt:  tools/deps.sh build [test] [ci] ...
# As root or with sudo. HIDANE_OFFLINE=1 installs nothing and says what is missing (exit 3).
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)

packages_of() {  # the packages of one section
  awk -v want="[$1]" '/^\[/ { on = ($1 == want); next } on && NF && $1 !~ /^#/ { print $1 }' \
    "$root/tools/packages.txt"
}

missing=""
for section in "$@"; do
  for package in $(packages_of "$section"); do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
      missing="$missing $package"
  done
  # Any cargo >= 1.85 will do; Debian 12 has one in its security archive. npm likewise.
  case $section in
    build) command -v cargo >/dev/null 2>&1 || missing="$missing cargo-web rustc-web" ;;
    test) command -v npm >/dev/null 2>&1 || missing="$missing nodejs npm" ;;
  esac
done
[ -n "$missing" ] || exit 0

if [ "${HIDANE_OFFLINE:-0}" = 1 ]; then
  echo "hidane: HIDANE_OFFLINE=1 and these Debian packages are missing:$missing" >&2
  exit 3
fi
sudo=""
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null 2>&1 || {
    echo "hidane: not root and no sudo; as root run: apt-get install$missing" >&2
    exit 3
  }
  sudo=sudo
fi
echo "hidane: installing Debian packages:$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
install() {
  $sudo apt-get update -qq >"$log" 2>&1 &&
    # shellcheck disable=SC2086  # a list of names
    $sudo apt-get install -y -qq --no-install-recommends $missing >>"$log" 2>&1
}
install || {
  tail -n 15 "$log" >&2
  echo "hidane: apt-get could not install them (log: $log); is the network up?" >&2
  exit 3
}
rm -f "$log"
