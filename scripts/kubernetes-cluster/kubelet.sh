#!/usr/bin/env bash
# Starts the kubelet of a node whose containerd runs.   kubelet.sh node0
set -euo pipefail
. "$(dirname "$0")/env.sh"
N=$1 D="$W/$1" NET=hk8s ADDRESS=$API
[ "$N" = node0 ] || NET=hk8s${N#node} ADDRESS=10.99.0.1${N#node}
inside=/proc/$(cat "$W/pid/containerd-$N")/ns
start kubelet-$N nsenter --mount=$inside/mnt --uts=$inside/uts --net=/run/netns/$NET \
  kubelet --config "$D/kubelet.yaml" --kubeconfig "$W/pki/$N.conf" --hostname-override $N --node-ip $ADDRESS \
  --cert-dir "$D/log" --root-dir /var/lib/kubelet --v 2
