#!/usr/bin/env bash
# Builds (once) Helm, which renders the chart of scripts/kubernetes, and prints its path. It lies outside the checkout
# (DSC_TEST_HELM, or the user's cache folder); kubernetes-chart.test.js looks for it there. Six minutes of a core.
set -euo pipefail
version=v3.19.5
folder="${DSC_TEST_HELM:-${XDG_CACHE_HOME:-$HOME/.cache}/dsc-test/helm}"
mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
if [ ! -e "$folder/.$version" ]; then
  GOBIN="$folder" GOFLAGS=-trimpath CGO_ENABLED=0 nice go install -ldflags='-s -w' "helm.sh/helm/v3/cmd/helm@$version" >&2
  touch "$folder/.$version"
fi
echo "$folder/helm"
