#!/usr/bin/env bash
# Uninstalling as the guide says leaves nothing on a node: the last part.
set -euo pipefail
. "$(dirname "$0")/functions.sh"
unlabelled() { local all; all=$(NODE=$1 labels) && grep -q hostname <<<"$all" && ! grep -q 'dsc.io/' <<<"$all"; }
teams
pod labelled flowers
ready labelled
check "the node names its dataset" eventually labelled flowers
k -n dsc rollout restart ds/dsc-agent >/dev/null
k -n dsc rollout status ds/dsc-agent --timeout=180s >/dev/null
check "and does again once its agent has restarted" eventually labelled flowers
gone labelled
k -n dsc delete daemonset dsc-agent --cascade=foreground >/dev/null
for node in node0 node1; do check "$node has no label of dsc left" unlabelled $node; done
k delete -k "$W/site/site" --ignore-not-found >/dev/null
check "the driver is gone" eventually sh -c '! nsenter --net=/run/netns/hk8s kubectl get csidriver dsc.io'
for node in node0 node1; do check "nothing is mounted on $node" eventually mounts $node 0; done
finish
