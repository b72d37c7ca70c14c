#!/usr/bin/env bash
# Kills the containerd of a node and starts it again; its pods live on.   containerd-again.sh node0
set -euo pipefail
. "$(dirname "$0")/env.sh"
N=$1 NET=hk8s
[ "$N" = node0 ] || NET=hk8s${N#node}
exec 9<"/proc/$(cat "$W/pid/containerd-$N")/ns/mnt" 8<"/proc/$(cat "$W/pid/containerd-$N")/ns/uts" # they outlive it
end "containerd-$N" -KILL
start "containerd-$N" nsenter --mount=/proc/self/fd/9 --uts=/proc/self/fd/8 --net=/run/netns/$NET containerd -c "$W/$N/containerd.toml"
for _ in $(seq 300); do ctr -a "/run/hk8s-$N.sock" version >/dev/null 2>&1 && exit 0; sleep 0.2; done
exit 1
