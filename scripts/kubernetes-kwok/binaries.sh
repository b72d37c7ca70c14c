#!/usr/bin/env bash
# Builds kwok and Kueue from the Go module proxy, into W/bin, once; Kubernetes itself as for test:kubernetes.
set -euo pipefail
W="${DSC_TEST_KWOK:-/var/cache/dsc-test/kwok}"
export GOTOOLCHAIN=local GOFLAGS=-mod=mod CGO_ENABLED=0
bash "$(dirname "$0")/../kubernetes-cluster/binaries.sh"
for each in kueue@v0.17.0 kwok@v0.8.0; do
  name=${each%@*}
  [ -x "$W/bin/$name" ] && continue
  mkdir -p "$W/bin" "$W/go/$name"
  cd "$W/go/$name"
  MOD=$(cd / && go mod download -json "sigs.k8s.io/$each" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
  {
    echo "module $name.local/build"
    grep -E '^(go|godebug) ' "$MOD"
    sed -n '/^godebug (/,/^)/p' "$MOD"
    echo "require sigs.k8s.io/$name ${each#*@}"
  } >go.mod
  nice -n 15 go build -p 2 -trimpath -ldflags '-s -w' -o "$W/bin/$name" "sigs.k8s.io/$name/cmd/$name"
done
