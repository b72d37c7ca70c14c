#!/usr/bin/env bash
# Ends a node as a power loss does: kubelet, containerd and all that runs in its pods.   node-down.sh node1
. "$(dirname "$0")/env.sh"
N=$1
end kubelet-$N -KILL
for file in $(find /sys/fs/cgroup/pids/hk8s-$N -name cgroup.procs 2>/dev/null); do
  for pid in $(cat "$file"); do kill -9 "$pid" 2>/dev/null; done
done
end containerd-$N -KILL
pgrep -f "containerd-shim.*hk8s-$N.sock" | while read -r pid; do kill -9 "$pid"; done
sleep 1
for controller in /sys/fs/cgroup/*/; do find "$controller/hk8s-$N" -depth -type d -exec rmdir {} \; 2>/dev/null; done
rm -rf --one-file-system "$W/$N/state" # it lies in memory
true
