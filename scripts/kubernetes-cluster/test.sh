#!/usr/bin/env bash
# Agents on a real Kubernetes (1.34: apiserver, scheduler, kubelet, containerd): pods in a restricted namespace read their
# datasets, refusals are events, and no end of a pod, agent or kubelet leaks a lease or takes a copy from who reads it.
#   npm run test:kubernetes [-- keep] [PART...]   as root; the first time builds the cluster's programs (some 10 minutes)
# Parts, with their words ("check-kills 50 50"): check, check-endings, check-shapes, check-kills, check-pressure, check-starts,
# check-controller, check-tls, check-examples and, last, check-uninstall, check-helm. keep: the cluster stays.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || { echo "needs root" && exit 1; }
SYSCTLS=$(for each in kernel.panic kernel.panic_on_oops vm.overcommit_memory; do echo "$each=$(sysctl -n $each)"; done)
if [ "${1:-}" = keep ]; then shift; else trap 'SYSCTLS="$SYSCTLS" bash "$here/down.sh"' EXIT; fi
. "$here/env.sh"
SYSCTLS="$SYSCTLS" bash "$here/down.sh" # what an earlier run kept
# A new record, too: it would not let another machine take the name of the node.
rm -rf --one-file-system "$W"/{node0,node1,node2,plain,etcd,services,site,tls,log,pid}
for step in binaries images control-plane services; do bash "$here/$step.sh"; done
for node in node0 node1; do bash "$here/node.sh" $node; done
bash "$here/site.sh"
[ $# -gt 0 ] || set -- check check-endings check-shapes check-kills check-pressure check-starts check-controller check-tls check-examples check-uninstall check-helm
failed=0
echo "== the cluster stands after $SECONDS s"
for part in "$@"; do
  read -ra words <<<"$part"
  began=$SECONDS
  bash "$here/${words[0]}.sh" "${words[@]:1}" || failed=1
  echo "== $part took $((SECONDS - began)) s"
done
exit $failed
