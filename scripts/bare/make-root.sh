#!/usr/bin/env bash
# Makes a Debian 12 with nothing but what every Debian has (minbase), once, and prints its path. Needs root and debootstrap.
#   scripts/bare/make-root.sh
set -euo pipefail
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dsc-test"
root="$cache/bare-bookworm"
if [ ! -e "$root" ]; then
  mkdir -p "$cache"
  made="$(mktemp -d "$cache/bare-XXXXXX")"
  trap 'rm -rf --one-file-system "$made"' EXIT
  debootstrap --variant=minbase bookworm "$made" >&2
  rm -f "$made"/var/cache/apt/archives/*.deb
  chroot "$made" useradd --create-home --shell /bin/sh ada
  chmod 755 "$made"
  mv --no-target-directory "$made" "$root"
fi
echo "$root"
