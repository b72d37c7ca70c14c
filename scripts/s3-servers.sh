#!/usr/bin/env bash
# Builds (once) the S3 servers that `npm run test:s3` runs against and prints the path of each, one per line:
#   versitygw=/…/versitygw
#   minio=/…/minio
# With a name only that one: `s3-servers.sh versitygw`.
# They lie outside the checkout (DSC_TEST_S3_SERVERS, or the user's cache folder), so that a clean checkout need
# not build them again. Several callers at once build once: the others wait. Needs Go; both come from the module
# proxy, at versions pinned here. A server that does not build is left out, with a line on stderr.
set -euo pipefail
folder="${DSC_TEST_S3_SERVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/dsc-test/s3-servers}"
servers=(
  versitygw=github.com/versity/versitygw/cmd/versitygw@v1.8.0
  minio=github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
)
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
for server in "${servers[@]}"; do
  name="${server%%=*}" module="${server#*=}"
  if [ "${1:-$name}" != "$name" ]; then continue; fi
  stamp="$folder/.$name-${module##*@}"
  if [ ! -e "$stamp" ]; then
    if ! command -v go >/dev/null; then
      echo "s3-servers: Go is not installed, $name is left out" >&2
      continue
    fi
    echo "s3-servers: building $module" >&2
    if ! GOBIN="$folder" GOFLAGS=-trimpath nice go install -ldflags='-s -w' "$module" >&2; then
      echo "s3-servers: $module does not build, $name is left out" >&2
      continue
    fi
    touch "$stamp"
  fi
  printf '%s=%s\n' "$name" "$folder/$name"
done
