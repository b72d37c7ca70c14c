#!/usr/bin/env bash
# Links the programs of Debian's essential packages, and git, into a folder, so that it can be a PATH without all others.
#   scripts/bare/link-programs.sh FOLDER
set -euo pipefail
ESSENTIAL='bash bsdutils coreutils dash debianutils diffutils findutils grep gzip hostname libc-bin login mawk ncurses-bin perl-base sed tar util-linux'
{
  for package in $ESSENTIAL; do dpkg -L "$package" | grep -E '^(/usr)?/s?bin/[^/]+$' || true; done
  printf '%s\n' awk git sh
} | sort -u | while read -r name; do
  file="$(command -v "${name##*/}" || true)"
  case "$file" in /*) ln -sf "$file" "$1/${name##*/}" ;; esac
done
