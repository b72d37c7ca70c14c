#!/usr/bin/env bash
# Agents on a real Kubernetes (1.34: apiserver, scheduler, kubelet, containerd): pods in a restricted namespace read their
# datasets, refusals are events, and no end of a pod, agent or kubelet leaks a lease or takes a copy from who reads it.
#   npm run test:kubernetes [-- keep]      as root; the first time builds the cluster's programs (some 10 minutes)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || { echo "needs root" && exit 1; }
SYSCTLS=$(for each in kernel.panic kernel.panic_on_oops vm.overcommit_memory; do echo "$each=$(sysctl -n $each)"; done)
[ "${1:-}" = keep ] || trap 'SYSCTLS="$SYSCTLS" bash "$here/down.sh"' EXIT
. "$here/env.sh"
# A new record, too: it would not let another machine take the name of the node.
rm -rf --one-file-system "$W"/{node0,etcd,services,site,log,pid}
for step in binaries images control-plane services; do bash "$here/$step.sh"; done
bash "$here/node.sh" node0
bash "$here/site.sh"
bash "$here/check.sh"
