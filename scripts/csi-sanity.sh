#!/usr/bin/env bash
# Builds (once) csi-sanity, the conformance test of the Container Storage Interface, and prints its path. It lies outside
# the checkout (DSC_TEST_CSI_SANITY, or the user's cache folder); csi.test.js looks for it there. Needs Go 1.25, which an
# older Go fetches by itself.
set -euo pipefail
version=v5.6.0
folder="${DSC_TEST_CSI_SANITY:-${XDG_CACHE_HOME:-$HOME/.cache}/dsc-test/csi-sanity}"
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
if [ ! -e "$folder/.$version" ]; then
  GOBIN="$folder" GOFLAGS=-trimpath CGO_ENABLED=0 nice go install -ldflags='-s -w' \
    "github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity@$version" >&2
  touch "$folder/.$version"
fi
echo "$folder/csi-sanity"
