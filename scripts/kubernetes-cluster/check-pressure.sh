#!/usr/bin/env bash
# A third node, with kubelet and the cache on one small disk that a pod fills: dsc gives up idle copies before kubelet evicts
# pods; a pod that kubelet evicts keeps no lease, and nobody else loses a copy.
set -euo pipefail
. "$(dirname "$0")/functions.sh"
here=$(cd "$(dirname "$0")" && pwd)
NODE=node2 D="$W/node2"
away() {
  for name in reader idle filler; do k -n team-a delete pod $name --force --grace-period=0 --ignore-not-found; done
  bash "$here/node-down.sh" node2
  k delete node node2 --ignore-not-found
  umount "$D/disk"
} >/dev/null 2>&1
limit() { # KEYS: of the cache, on all nodes
  sed -i "s/maxDatasets: 3[^}]*}/maxDatasets: 3$1}/" "$W/site/site/dsc.yaml"
  k apply -k "$W/site/site" >/dev/null
  k -n dsc rollout status ds/dsc-agent --timeout=180s >/dev/null
}
trap 'away; limit ", minFree: 64MiB"' EXIT
# leaves MIB: the pod writes until so much of its disk is free
leaves() {
  k -n team-a exec filler -- sh -c 'free=$(df --output=avail --block-size=1M /scratch | tail -n 1)
    [ "$free" -le '"$1"' ] || head -c "$((free - '"$1"'))M" /dev/zero >>/scratch/file; sync'
}
evicted() { [ "$(k -n team-a get pod "$1" -o jsonpath='{.status.phase} {.status.reason}')" = "Failed Evicted" ]; }
pressed() { [ "$(k get node node2 -o jsonpath='{.status.conditions[?(@.type=="DiskPressure")].status}')" = "$1" ]; }
node() { A status --json | jq "[.nodes[] | select(.node == \"node2\")][0]"; }

teams
limit "" # the default for kubelet's own disk
mkdir -p "$D/disk"
truncate --size=420M "$D/disk.img" && mkfs.ext4 -q -m 0 "$D/disk.img"
mount -o loop "$D/disk.img" "$D/disk"
for each in kubelet dsc; do mkdir -p "$D/disk/$each" && ln -s "disk/$each" "$D/$each"; done
NODEFS=15% bash "$here/node.sh" node2 >/dev/null
k label node node2 nvidia.com/gpu.present=true >/dev/null
pod reader flowers && pod idle large && pod filler birds
check "pods read their datasets on the small disk" all "ready reader 180s" "ready idle 120s" "ready filler"
gone idle
check "an idle copy stays" eventually labelled large
kubelet=$(k get --raw /api/v1/nodes/node2/proxy/configz | jq -r '.kubeletconfig.evictionHard["nodefs.available"]')
marks=$(node | jq -r '"\(.policy.minFreeBytes) of \(.usage.disk.capacityBytes // .disk.capacityBytes // 0)"')
echo "kubelet evicts pods at $kubelet, dsc idle copies at $marks bytes"
check "dsc's mark is above kubelet's" [ "$(node | jq '[.. | .minFreeBytes? // empty] | max')" -gt $((420 * 15 / 100 << 20)) ]
leaves 70
check "a pod that fills the disk makes dsc evict the idle copy" eventually not_labelled large
check "before kubelet evicts anybody" all "pressed False" "ready filler" "ready reader"
leaves 20
check "a disk that is filled further makes kubelet evict the pod that fills it" eventually evicted filler
check "its lease has ended" eventually not_leased filler
check "who reads beside it keeps copy, lease and life" all "reads reader" "leased reader" "labelled flowers"
gone reader --wait=false
check "no mount is left on the node" eventually mounts node2 0
finish
