#!/usr/bin/env bash
# Finds or builds the tools that `npm run bench -- stage` compares with, and prints `name=/path`, one per line.
# s5cmd is built from the Go module proxy, at a version pinned here, into the user's cache folder; the AWS CLI and
# rclone are taken from PATH (Debian: apt-get install awscli rclone). One that is not there is left out, with a line
# on stderr. s5cmd is built from a module of our own: `go install …@version` also asks for a list of versions that
# some proxies do not serve.
set -euo pipefail
version=v2.3.0
folder="${DSC_BENCH_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/dsc-test/peers}"
s5cmd="$folder/s5cmd-$version"
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
if [ ! -x "$s5cmd" ] && command -v go >/dev/null; then
  module="$(mktemp -d)"
  trap 'rm -rf "$module"' EXIT
  printf 'module peers\ngo 1.22\nrequire github.com/peak/s5cmd/v2 %s\n' "$version" >"$module/go.mod"
  echo "bench-peers: building s5cmd $version" >&2
  (cd "$module" && GOFLAGS=-mod=mod nice go build -trimpath -ldflags='-s -w' -o "$s5cmd" github.com/peak/s5cmd/v2 >&2) || true
fi
if [ -x "$s5cmd" ]; then echo "s5cmd=$s5cmd"; else echo 'bench-peers: s5cmd could not be built (needs Go), left out' >&2; fi
for name in aws rclone; do
  if path="$(command -v "$name")"; then echo "$name=$path"; else echo "bench-peers: $name is not installed, left out" >&2; fi
done
