#!/usr/bin/env bash
# Uninstalling as the guide says leaves nothing on a node: the last part.
set -euo pipefail
. "$(dirname "$0")/functions.sh"
nothing_left() { local all; all=$(names_of_dsc) && [ -z "$all" ]; }

teams
pod labelled flowers
ready labelled
check "the node names its dataset" eventually labelled flowers
k -n dsc rollout restart ds/dsc-agent >/dev/null
k -n dsc rollout status ds/dsc-agent --timeout=300s >/dev/null
check "and does again once its agent has restarted" eventually labelled flowers
gone labelled
uninstall
for node in node0 node1; do check "$node has no label of dsc left" unlabelled $node; done
check "nothing in the cluster has a name of dsc" eventually nothing_left
for node in node0 node1; do check "nothing is mounted on $node" eventually mounts $node 0; done
finish
