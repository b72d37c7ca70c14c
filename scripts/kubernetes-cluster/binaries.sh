#!/usr/bin/env bash
# Builds Kubernetes from the Go module proxy: one program "hyperkube" (apiserver, controller manager, scheduler, kubelet)
# with a link for each name. Debian's containerd, runc, etcd and CNI plugins beside it. 460 seconds of a core, once.
set -euo pipefail
W="${DSC_TEST_KUBERNETES:-/var/cache/dsc-test/kubernetes}"
KUBE=1.34.4
export GOTOOLCHAIN=local GOFLAGS=-mod=mod CGO_ENABLED=0
command -v containerd runc etcd >/dev/null && [ -d /usr/lib/cni ] || {
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends containerd runc etcd-server etcd-client containernetworking-plugins debootstrap jq
}
[ "$(cat "$W/bin/version" 2>/dev/null)" != "$KUBE" ] || exit 0
mkdir -p "$W/bin" "$W/go/kube/hyper"
cd "$W/go/kube"
# k8s.io/kubernetes replaces its staging modules by folders that no module zip has: here by the published ones.
MOD=$(cd / && go mod download -json "k8s.io/kubernetes@v$KUBE" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
{
  echo "module kube.local/build"
  grep -E '^(go|godebug) ' "$MOD"
  sed -n '/^godebug (/,/^)/p' "$MOD"
  echo "require k8s.io/kubernetes v$KUBE"
  echo "replace ("
  sed -n "s#^[[:space:]]*\(k8s.io/[a-z0-9-]*\) => ./staging/.*#\t\1 => \1 v0.${KUBE#1.}#p" "$MOD"
  echo ")"
} >go.mod
cat >hyper/main.go <<'GO'
// All of Kubernetes in one program, which looks at the name it is called by.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": manager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	}
	make, ok := commands[filepath.Base(os.Args[0])]
	if !ok {
		fmt.Fprintln(os.Stderr, "call it kube-apiserver, kube-controller-manager, kube-scheduler or kubelet")
		os.Exit(2)
	}
	os.Exit(cli.Run(make()))
}
GO
P=k8s.io/component-base/version
go mod tidy
nice -n 15 go build -p 2 -trimpath -o "$W/bin/hyperkube" \
  -ldflags "-s -w -X $P.gitVersion=v$KUBE -X $P.gitMajor=1 -X $P.gitMinor=$(echo "$KUBE" | cut -d. -f2)" ./hyper
for each in kube-apiserver kube-controller-manager kube-scheduler kubelet; do ln -sf hyperkube "$W/bin/$each"; done
command -v kubectl >/dev/null || nice -n 15 go build -p 2 -trimpath -ldflags '-s -w' -o "$W/bin/kubectl" k8s.io/kubernetes/cmd/kubectl
echo "$KUBE" >"$W/bin/version"
