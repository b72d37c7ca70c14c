#!/usr/bin/env bash
# Builds (once) a Go program for tests and prints its path: go-program.sh <name> <package> <version> [<folder>]. It lies
# outside the checkout, in <folder> or the user's cache folder. An older Go fetches the one that a program needs.
set -euo pipefail
name="$1" package="$2" version="$3"
folder="${4:-${XDG_CACHE_HOME:-$HOME/.cache}/dsc-test/$name}"
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
if [ ! -e "$folder/.$version" ]; then
  GOBIN="$folder" GOFLAGS=-trimpath CGO_ENABLED=0 nice go install -ldflags='-s -w' "$package@$version" >&2
  touch "$folder/.$version"
fi
echo "$folder/$name"
