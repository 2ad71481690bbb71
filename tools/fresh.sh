#!/bin/sh
# Proof that a fresh machine suffices: a minimal Debian 12 in a chroot, handed the host's apt
# sources, CA certificates and registry client configuration and nothing else, runs the README's
# two commands on a clone of this checkout's HEAD.
#
#   tools/fresh.sh [--keep] [COMMAND...]     default: both README commands; as root
#   FRESH_DIR=/some/folder                   where the chroot goes (needs ~6 GB; default: mktemp)
#
# Prints the minutes of each; the full log is FRESH_DIR/fresh.log. Not kept unless --keep.
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "fresh: chroot and debootstrap need root" >&2; exit 3; }
command -v debootstrap >/dev/null || apt-get install -y -qq debootstrap >/dev/null
keep=0
[ "${1:-}" = --keep ] && { keep=1; shift; }

dir=${FRESH_DIR:-$(mktemp -d)}
chroot_dir=$dir/debian
log=$dir/fresh.log
mkdir -p "$chroot_dir"

finish() {
  for mount in dev/shm dev proc sys; do
    umount -l "$chroot_dir/$mount" 2>/dev/null || true
  done
  [ "$keep" = 1 ] || rm -rf "$chroot_dir"
}
trap finish EXIT INT TERM

minutes() {  # minutes NAME COMMAND...: runs it, prints how long it took
  name=$1
  shift
  start=$(date +%s)
  code=0
  "$@" >>"$log" 2>&1 || code=$?
  spent=$(($(date +%s) - start))
  printf 'fresh: %-28s exit %d   %d min %02d s\n' "$name" "$code" $((spent / 60)) $((spent % 60)) |
    tee -a "$log"
  return "$code"
}

copy() {  # copy PATH...: the same path inside, if it exists here
  for path in "$@"; do
    [ -e "$path" ] || continue
    mkdir -p "$chroot_dir$(dirname "$path")"
    cp -aL "$path" "$chroot_dir$(dirname "$path")/"
  done
}

mirror=$(awk '/^URIs:/ { print $2; exit }' /etc/apt/sources.list.d/debian.sources)
minutes "debootstrap" debootstrap --variant=minbase bookworm "$chroot_dir" "$mirror"

# Registry access as the host has it, nothing else of the host.
rm -f "$chroot_dir/etc/apt/sources.list"
copy /etc/apt/sources.list.d/debian.sources /etc/apt/auth.conf.d /etc/resolv.conf /etc/hosts \
  /etc/ssl/certs /usr/local/share/ca-certificates /etc/pip.conf /root/.npmrc \
  /root/.cargo/config.toml
for conf in /etc/apt/apt.conf.d/*; do
  grep -q 'Acquire' "$conf" 2>/dev/null && ! grep -qi docker "$conf" && copy "$conf"
done
mount --bind /dev "$chroot_dir/dev"
mkdir -p "$chroot_dir/dev/shm"
mount -t proc proc "$chroot_dir/proc"
mount --bind /sys "$chroot_dir/sys"

git clone -q . "$chroot_dir/root/hidane"

inside() {
  # Registry client settings travel as environment variables too; compilers and paths do not.
  env -i HOME=/root TERM=dumb LANG=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    $(env | grep -E '^(PIP_CERT|SSL_CERT_FILE|NODE_EXTRA_CA_CERTS|CARGO_HTTP_CAINFO|CARGO_REGISTRIES_[A-Z_]*|https?_proxy|HTTPS?_PROXY|no_proxy)=') \
    chroot "$chroot_dir" sh -c "cd /root/hidane && $*"
}

code=0
if [ $# -gt 0 ]; then
  minutes "$*" inside "$*" || code=1
else
  minutes "./hidane up --demo-only" inside ./hidane up --demo-only || code=1
  minutes "./hidane test" inside ./hidane test || code=1
fi
echo "fresh: last lines of $log:"
tail -n 40 "$log"
exit $code
