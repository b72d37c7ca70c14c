#!/usr/bin/env bash
# Every way in which a pod, its node or an agent ends, on node1: no lease stays, no copy in use goes.
set -euo pipefail
. "$(dirname "$0")/functions.sh"
NODE=node1
here=$(cd "$(dirname "$0")" && pwd)
evict() {
  k create -f - --raw "/api/v1/namespaces/team-a/pods/$1/eviction" >/dev/null <<<'{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "'"$1"'", "namespace": "team-a"}}'
}
phase() { [ "$(k -n team-a get pod "$1" -o jsonpath='{.status.phase}')" = "$2" ]; }
node_ready() { k wait --for=condition=Ready=$1 node/node1 --timeout=300s >/dev/null; }

teams
pod stays flowers
for each in deleted forced evicted; do pod $each birds; done
pod ended bees
check "pods on a second node read their datasets" all "ready stays" "ready deleted" "ready forced" "ready evicted" "ready ended"
gone deleted
gone forced --force --grace-period=0
evict evicted
k -n team-a patch pod ended -p '{"spec": {"activeDeadlineSeconds": 1}}' >/dev/null # kubelet ends it, as under pressure
check "a pod that is deleted holds nothing" eventually not_leased deleted
check "a pod that is deleted by force holds nothing" eventually not_leased forced
check "a pod that is evicted holds nothing" eventually not_leased evicted
check "a pod that kubelet ends holds nothing while its object stays" eventually not_leased ended
check "its object stays" eventually phase ended Failed
check "who was not asked to go holds its copy and reads" all "leased stays" "reads stays"
check "and nothing else is mounted" eventually mounts node1 1
gone ended --wait=false

pod drained birds
ready drained
k drain node1 --ignore-daemonsets --force --delete-emptydir-data --timeout=300s >/dev/null 2>&1
check "a drained node has no lease" all "eventually not_leased drained" "eventually not_leased stays"
check "nor a mount" eventually mounts node1 0
k uncordon node1 >/dev/null

RESTART=Always pod returns flowers
RESTART=Always pod killed bees
pod lost birds
ready returns && ready killed && ready lost
bash "$here/node-down.sh" node1
node_ready Unknown
check "a lost node keeps its leases" all "leased returns" "leased lost"
gone lost --force --grace-period=0
bash "$here/node.sh" node1 >/dev/null
check "when it returns, what was deleted meanwhile holds nothing" eventually not_leased lost
check "and what stayed reads again" eventually reads returns
check "by its old lease" leased returns
check "the node names its datasets" eventually labelled flowers
check "nothing else is mounted" eventually mounts node1 2

for turn in 1 2 3; do
  kill -9 $(agent_pid node1) 2>/dev/null || true # it may not be back yet
  end kubelet-node1 -KILL
  RESTART=Always pod "chaos$turn" birds # a container that was being started when kubelet was killed counts as failed
  [ $turn = 2 ] && gone chaos1 --force --grace-period=0
  bash "$here/kubelet.sh" node1
done
check "pods that come while agent and kubelet are killed run" all "ready chaos2" "ready chaos3"
check "one that goes meanwhile holds nothing" eventually not_leased chaos1
check "who read all the time still reads, and holds its copy" all "reads returns" "leased returns" "reads killed" "leased killed"
check "only what runs is mounted" eventually mounts node1 4
for name in returns killed chaos2 chaos3; do gone $name --wait=false; done
check "no lease is left" eventually nothing_leased
check "no mount is left on the second node" eventually mounts node1 0
finish
