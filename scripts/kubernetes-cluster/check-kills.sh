#!/usr/bin/env bash
# Kills agents, mounters, kubelets, containerds and the API server at random, while pods on both nodes come, go and compare
# each byte that they read with its digest: nobody reads a wrong one or loses a copy, no lease or mount stays.
#   check-kills.sh [ROUNDS [PODS [SEED]]]   by hand: npm run test:kubernetes -- "check-kills 50 50"
set -euo pipefail
. "$(dirname "$0")/functions.sh"
here=$(cd "$(dirname "$0")" && pwd)
ROUNDS=${1:-6} PODS=${2:-8} SEED=${3:-$RANDOM}
RANDOM=$SEED
echo "check-kills $ROUNDS $PODS $SEED"
COMMAND=$COMPARE
RESTART=Always # a container that was being started when kubelet was killed counts as failed
DATASETS=(flowers birds bees moths) # a node has room for three
pick() { PICKED=${*:RANDOM % $# + 1:1}; } # no subshell: that would have other random numbers
again() { eventually "$@" || { echo "gave up: $*" && return 1; }; }
last=0 names=()
come() {
  pick node0 node1 && NODE=$PICKED
  pick "${DATASETS[@]}"
  last=$((last + 1)) names+=("$PICKED-$last")
  again pod "$PICKED-$last" "$PICKED"
}
leave() { # one that lives, some by force
  local at=$((RANDOM % ${#names[@]})) how=
  [ $((RANDOM % 3)) = 0 ] && how=--force
  again k -n team-a delete pod "${names[at]}" --wait=false --ignore-not-found $how
  unset "names[at]" && names=("${names[@]}")
}
hit() { # WHAT NODE
  case $1 in
    agent) kill -9 $(agent_pid "$2") ;;
    mounter) kill -9 $(mounter_pid "$2") ;;
    kubelet) end "kubelet-$2" -KILL && sleep $((RANDOM % 5)) && bash "$here/kubelet.sh" "$2" ;;
    containerd) bash "$here/containerd-again.sh" "$2" ;;
    apiserver) end apiserver -KILL && sleep $((RANDOM % 5)) && bash "$here/apiserver.sh" ;;
  esac >/dev/null 2>&1 || true # it may not be back yet
}
phases() {
  k -n team-a get pod -o json | jq -r '.items[] | .status.containerStatuses[0] as $it
    | "\(.metadata.name) \(.status.phase) \($it.ready) \($it.state.terminated.exitCode) \($it.lastState.terminated.exitCode)"'
}
answered() { ANSWER=$(phases) && [ -n "$ANSWER" ]; }
none_wrong() { eventually answered && ! grep ' 77' <<<"$ANSWER"; }
foreign_wait() { local all; all=$(phases) && [ "$(grep -c '^foreign. Pending' <<<"$all")" = 2 ]; }
all_run() {
  local all node
  for node in node0 node1; do # a kubelet that starts while containerd is away ends; systemd would start it again
    lives kubelet-$node || bash "$here/kubelet.sh" $node
  done
  all=$(phases) && ! grep -v '^foreign' <<<"$all" | grep -v ' Running true '
}
leases_fit() {
  local all
  all=$(A leases) && diff <(grep -o 'pod:team-a/[a-z0-9-]*' <<<"$all" | sort) <(printf 'pod:team-a/%s\n' "${names[@]}" | sort)
}

teams
for node in node0 node1; do NODE=$node pod "foreign${node#node}" private; done
for _ in $(seq "$PODS"); do come; done
wrong=0 served=0
for round in $(seq "$ROUNDS"); do
  said=
  for _ in 1 2; do
    pick agent agent mounter mounter kubelet kubelet containerd apiserver && what=$PICKED
    pick node0 node1
    said+=" $what of $PICKED,"
    hit "$what" "$PICKED"
    for _ in $(seq $((PODS / 8))); do leave && come; done
    sleep $((RANDOM % 4))
  done
  echo "round $round:$said"
  none_wrong || { wrong=1 && break; }
  eventually foreign_wait || { served=1 && break; }
done
check "no pod has read a wrong byte, or lost its copy" [ $wrong = 0 ]
check "no namespace was served what is another's" [ $served = 0 ]
kept=()
for name in "${names[@]}"; do
  if [[ $name = moths-* ]]; then again k -n team-a delete pod "$name" --wait=false; else kept+=("$name"); fi
done
names=("${kept[@]}") # now there is room for all
check "once all is back, every pod runs" eventually all_run
check "each has its lease, and nobody else has" eventually leases_fit
check "and the bytes are still right" none_wrong
for name in "${names[@]}" foreign0 foreign1; do gone "$name" --wait=false; done
check "no lease is left" eventually nothing_leased
for node in node0 node1; do check "no mount is left on $node" eventually mounts $node 0; done
check "nor a note of a volume" eventually sh -c "! find $W/node?/kubelet/plugins/dsc.io/volumes -type f | grep ."
finish
