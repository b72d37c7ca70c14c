#!/usr/bin/env bash
# The chart with Helm: installed, upgraded, rolled back and uninstalled while a pod reads its dataset, then installed again.
# It takes what kustomize installed away, so it is the last part.
set -euo pipefail
. "$(dirname "$0")/functions.sh"
helm=$("$CHECKOUT/scripts/helm.sh" 2>"$W/log/helm-build.log")
chart="$CHECKOUT/scripts/kubernetes"
H() { in_net "$helm" --namespace dsc "$@"; }
# values MAX_DATASETS: those of the site that kustomize installs, but for one
values() {
  cat <<YAML
nodeSelector: {nvidia.com/gpu.present: 'true'}
controller: {enabled: true, webhook: self-signed}
config:
$(sed "s/^/  /; s/maxDatasets: 3/maxDatasets: $1/" "$W/site/site/dsc.yaml")
YAML
}
notes() { values 3 | H install dsc "$chart" --values - --dry-run=server; }
rolled() { all "k -n dsc rollout status ds/dsc-agent --timeout=180s" "k -n dsc rollout status deploy/dsc-controller --timeout=180s" >/dev/null; }
allow() { [ "$(A status --json | jq -c '[.nodes[].policy.maxDatasets] | unique')" = "[$1]" ]; }
certificate_of() { k -n dsc get secret dsc-webhook -o jsonpath='{.data.tls\.crt}' | sha256sum; }
# It ends when a byte of its dataset is missing or wrong, and never starts again.
still_reads() { all "reads reader" "k -n team-a get pod reader -o jsonpath='{.status.phase}' | grep -q Running"; }
only_own_left() { local all; all=$(names_of_dsc) && [ -n "$all" ] && ! grep -v '^namespace/dsc$\|^secret/dsc-\|^lease.coordination' <<<"$all"; }
waits_for_data() {
  ANNOTATIONS='dsc.io/wait: staged' pod "$1" birds
  all "event $1 'Staged.*birds ready'" "ready $1"
}

k get ns dsc >/dev/null 2>&1 && uninstall
k apply -f "$chart/base/namespace.yaml" >/dev/null
teams
k taint node --all dsc.io/agent-not-ready=:NoSchedule --overwrite >/dev/null
k -n dsc create secret generic dsc-record --from-env-file="$W/site/site/secrets/record.env" >/dev/null
check "before Secrets are there, its notes name them" [ "$(notes | grep -o 'create secret generic dsc-[^ ]*')" = "create secret generic dsc-agents-token
create secret generic dsc-s3" ]
k -n dsc create secret generic dsc-agents-token --from-file=token="$W/site/site/secrets/agents-token" >/dev/null
k -n dsc create secret generic dsc-s3 --from-env-file="$W/site/site/secrets/s3.env" >/dev/null
values 3 | H install dsc "$chart" --values - >"$W/log/helm.log"
check "Helm installs agents and controllers" rolled
sed -n "/^NOTES/,\$p" "$W/log/helm.log"
COMMAND=$COMPARE pod reader flowers
check "a pod reads its dataset" ready reader
check "the webhook gives a pod its gate, and the controller opens it" waits_for_data first
gone first --wait=false
before=$(certificate_of)
values 4 | H upgrade dsc "$chart" --values - >/dev/null
check "an upgrade replaces them" rolled
check "by agents with the changed value" eventually allow 4
check "the webhook keeps its certificate" [ "$(certificate_of)" = "$before" ]
check "and is still trusted" waits_for_data second
gone second --wait=false
check "the pod still reads, by its lease" all "still_reads" "eventually leased reader"
H rollback dsc 1 >/dev/null
check "a rollback replaces them" rolled
check "by agents with the first value" eventually allow 3
check "the pod still reads, by its lease" all "still_reads" "eventually leased reader"

k -n dsc delete daemonset dsc-agent --cascade=foreground >/dev/null
H uninstall dsc --wait >/dev/null
for node in node0 node1; do check "$node has no label of dsc left" unlabelled $node; done
check "only the namespace, its Secrets and the lease of its controllers are left" eventually only_own_left
check "the pod still reads" still_reads
pod early bees
check "a pod that comes without agents has an event that names the driver" event early 'driver name dsc.io not found'
show early
values 3 | H install dsc "$chart" --values - >/dev/null
check "when it is installed again, that pod runs" all rolled "ready early 180s"
check "the first still reads, by its lease" all "still_reads" "eventually leased reader"
gone reader && gone early
check "no lease is left" eventually nothing_leased
for node in node0 node1; do check "no mount is left on $node" eventually mounts $node 0; done
finish
