#!/usr/bin/env bash
# The images, without a registry or a builder: pause (static C) and dsc (debootstrap, and the steps of
# scripts/container/Dockerfile).
set -euo pipefail
. "$(dirname "$0")/env.sh"
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$W/img" "$W/make/pause"
# Those of the last run do if nothing that they are made of has changed.
[ "$(cat "$W/img/of" 2>/dev/null)" != "$CHECKOUT" ] || [ -n "$(find "$CHECKOUT"/{dist,scripts/container,scripts/package,package-lock.json} "$here"/{images.sh,make-image.py} -newer "$W/img/of" -print -quit)" ] || exit 0
rm -f "$W/img/of"
cc -static -Os -s "$here/pause.c" -o "$W/make/pause/pause"
python3 "$here/make-image.py" "$W/img/pause.tar" docker.io/local/pause:1 "$W/make/pause" entrypoint=/pause user=65535:65535
(cd "$CHECKOUT" && nice -n 15 node scripts/package/package.mjs executable --output "$W/make/dist")
R="$W/make/root"
[ -e "$W/make/base.done" ] || {
  rm -rf "$W/make/base"
  nice -n 15 debootstrap --variant=minbase bookworm "$W/make/base" >"$W/make/debootstrap.log"
  touch "$W/make/base.done"
}
rm -rf "$R" && cp -a "$W/make/base" "$R"
install -m 755 "$W/make/dist/dsc-linux-x64" "$R/usr/bin/dsc"
chroot "$R" env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root sh -ec "$(sed -n '/^RUN /,/[^\\]$/p' "$CHECKOUT/scripts/container/Dockerfile" | sed '1s/^RUN //')"
# For the examples: they count the files of the dataset that is their last word.
for each in python torchrun; do
  printf '%s\n' '#!/bin/sh' 'for last; do :; done' 'echo "rank ${JOB_COMPLETION_INDEX:-0}: $(find "$last" -type f | wc -l) files"' >"$R/usr/local/bin/$each"
  chmod 755 "$R/usr/local/bin/$each"
done
rm -rf "$R"/var/cache/apt/archives/*.deb "$R"/var/lib/apt/lists/*
python3 "$here/make-image.py" "$W/img/dsc.tar" registry.example/dsc:0.1.0 "$R" entrypoint=/usr/bin/dsc cmd=--help user=10001:10001
echo "$CHECKOUT" >"$W/img/of"
