#!/usr/bin/env bash
# Finds or builds what `npm run bench -- gateway` runs beside the gateway, and prints `name=/path`, one per line: nginx and
# wrk are taken from PATH (Debian: apt-get install nginx-light wrk); `rclone serve s3` is built with Go, at a version
# pinned here, with folders as its only backend, because Debian's rclone does not have it yet. With `found`: only what is
# there already.
set -euo pipefail
version=v1.71.2
folder="${DSC_BENCH_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/dsc-test/peers}"
rclone="$folder/rclone-serve-s3-$version"
mkdir -p "$folder"
exec 9>"$folder/.lock-rclone"
flock 9
if [ "${1:-}" != found ] && [ ! -x "$rclone" ] && command -v go >/dev/null; then
  module="$(mktemp -d)"
  trap 'rm -rf "$module"' EXIT
  printf 'module peers\ngo 1.24\nrequire github.com/rclone/rclone %s\n' "$version" >"$module/go.mod"
  cat >"$module/main.go" <<'GO'
package main

import (
	_ "github.com/rclone/rclone/backend/local"
	"github.com/rclone/rclone/cmd"
	_ "github.com/rclone/rclone/cmd/serve"
	_ "github.com/rclone/rclone/cmd/serve/s3"
)

func main() { cmd.Main() }
GO
  echo "gateway-tools: building rclone $version" >&2
  (cd "$module" && GOFLAGS=-mod=mod nice go build -trimpath -ldflags='-s -w' -o "$rclone" . >&2) || true
fi
if [ -x "$rclone" ]; then echo "rclone=$rclone"; else echo 'gateway-tools: rclone could not be built (needs Go), left out' >&2; fi
for name in nginx wrk; do
  path="$(PATH="$PATH:/usr/sbin" command -v "$name" || true)"
  if [ -n "$path" ]; then echo "$name=$path"; else echo "gateway-tools: $name is not installed" >&2; fi
done
