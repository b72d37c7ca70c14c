#!/usr/bin/env bash
# A scheduler with 100 nodes that only pretend to run pods (kwok), with Kueue: where pods land that wait for data, and how
# long they hold GPUs while it comes. The nodes' agents are one stand-in process; dsc's controller is the real one, with the
# rights of the chart. Nothing leaves a network namespace of its own.
#   npm run test:kwok [-- ROUND...]   as root; rounds: plain, gates, kueue; the first time builds the programs
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || { echo "needs root" && exit 1; }
bash "$here/binaries.sh"
export W="${DSC_TEST_KWOK:-/var/cache/dsc-test/kwok}"
export PATH="$here/../../node_modules/.bin:$W/bin:${DSC_TEST_KUBERNETES:-/var/cache/dsc-test/kubernetes}/bin:$PATH:/usr/sbin:/sbin"
exec unshare --net --pid --fork --kill-child --mount-proc bash -c '
  set -e
  ip link set lo up
  ip link add keep type veth peer name keepp # apiserver looks for an address and a default route
  ip addr add 10.98.0.1/24 dev keep
  ip link set keep up && ip link set keepp up
  ip route add default via 10.98.0.254
  # Kueue looks for the certificate of its metrics at a fixed place.
  mkdir -p "$W/etc/upper/kueue/metrics/certs" "$W/etc/work"
  mount -t overlay overlay -o "lowerdir=/etc,upperdir=$W/etc/upper,workdir=$W/etc/work" /etc
  exec node "$@"' bash "$here/kwok.mjs" "$@"
