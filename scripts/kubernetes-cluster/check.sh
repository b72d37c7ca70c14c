#!/usr/bin/env bash
# What test.sh checks, on a cluster that is up.
set -euo pipefail
. "$(dirname "$0")/env.sh"
k() { in_net kubectl "$@"; }
A() { k -n dsc exec ds/dsc-agent -c agent -- dsc "$@"; }
passed=0 failed=0
check() { if "${@:2}"; then passed=$((passed + 1)); echo "ok      $1"; else failed=$((failed + 1)); echo "FAILED  $1"; fi; }
# eventually COMMAND...: within 100 s
eventually() { for _ in $(seq 100); do "$@" >/dev/null 2>&1 && return 0; sleep 1; done; return 1; }
# pod NAME DATASET [NAMESPACE]: a pod of a user, with what Pod Security calls restricted
pod() {
  k -n "${3:-team-a}" apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, runAsUser: 20001, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: train
      image: registry.example/dsc:0.1.0
      imagePullPolicy: Never
      command: [sh, -c, 'find /data -type f | wc -l; while cat /data/*/* /data/* >/dev/null 2>&1; [ -n "\$(ls /data)" ]; do sleep 1; done']
      securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
      volumeMounts: [{name: data, mountPath: /data, readOnly: true}]
  volumes:
    - name: data
      $(if [ "${2#claim:}" != "$2" ]; then echo "persistentVolumeClaim: {claimName: ${2#claim:}}"; else echo "csi: {driver: dsc.io, readOnly: true, volumeAttributes: {dataset: '$2'}}"; fi)
YAML
}
ready() { k -n team-a wait --for=condition=Ready "pod/$1" --timeout="${2:-60s}" >/dev/null; }
gone() { k -n team-a delete pod "$1" --ignore-not-found "${@:2}" >/dev/null 2>&1; }
# Each reads all of the output before it searches it: a command that fails must not look like one that found nothing.
leased() { local all; all=$(A leases) && grep -q "pod:team-a/$1 " <<<"$all"; }
not_leased() { local all; all=$(A leases) && ! grep -q "pod:team-a/$1 " <<<"$all"; }
nothing_leased() { local all; all=$(A leases) && ! grep -q pod: <<<"$all"; }
nothing_mounted() {
  local all; all=$(nsenter --mount="/proc/$(cat "$W/pid/containerd-node0")/ns/mnt" cat /proc/self/mountinfo) &&
    [ -n "$all" ] && ! grep -q kubernetes.io~csi <<<"$all"
}
event() { eventually sh -c "nsenter --net=/run/netns/hk8s kubectl -n team-a describe pod $1 | grep -q '$2'"; }
show() { k -n team-a describe pod "$1" | sed -n '/^Events/,$p' | grep -E "FailedMount" | tail -1 | cut -c1-1000; }
reads() { [ -n "$(k -n team-a exec "$1" -- ls /data)" ]; }
cannot_write() { local said; ! said=$(k -n team-a exec "$1" -- touch /data/x 2>&1) && grep -q 'Read-only file system' <<<"$said"; }
agent_pid() { pgrep --uid 10001 --full "dsc agent --csi"; }
labels() { k get node node0 -o go-template='{{range $key, $value := .metadata.labels}}{{$key}}={{$value}} {{end}}'; }
labelled() { local all; all=$(labels) && grep -q "dsc.io/$1=ready" <<<"$all"; }
not_labelled() { local all; all=$(labels) && grep -q hostname <<<"$all" && ! grep -q "dsc.io/$1=" <<<"$all"; }
no_taint() { local all; all=$(k get node node0 -o json) && grep -q node0 <<<"$all" && ! grep -q agent-not-ready <<<"$all"; }
# denied COMMAND...: with the rights of the agent on node0
denied() {
  local said token
  token=$(k -n dsc exec ds/dsc-agent -c agent -- cat /var/run/secrets/kubernetes.io/serviceaccount/token)
  ! said=$(k --kubeconfig=/dev/null --server="https://$API:6443" --certificate-authority="$W/pki/ca.crt" --token="$token" "$@" 2>&1) &&
    grep -q 'an agent changes' <<<"$said"
}
no_secret() { local all; all=$(k -n team-a exec "$1" -- env) && [ -n "$all" ] && ! grep -q 'PGPASSWORD\|AWS_\|DSC_' <<<"$all"; }

examples="$CHECKOUT/scripts/kubernetes/examples"
for team in team-a team-b; do
  k create ns $team --dry-run=client -o yaml | k apply -f - >/dev/null
  k label ns $team pod-security.kubernetes.io/enforce=restricted --overwrite >/dev/null
done
pod reader flowers
check "a pod in a restricted namespace reads its dataset by four lines" ready reader
check "it holds the lease" leased reader
check "its node names the dataset in a label" eventually labelled flowers
check "the startup taint is gone" eventually no_taint
hinted=$(A hint flowers --affinity)
k run preferring --image=x --dry-run=client -o json | jq --argjson it "$hinted" '.spec.affinity.nodeAffinity = $it' >"$W/preferring.json"
check "a pod may prefer it by the term that dsc hint prints" k create --dry-run=server -f "$W/preferring.json"
k apply -f - >/dev/null <<<'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "other"}}'
check "an agent cannot label another node" denied label node other dsc.io/flowers=ready
check "an agent cannot set another label" denied label node node0 gpu=none
check "an agent cannot change what is scheduled" denied patch node node0 -p '{"spec":{"unschedulable":true}}'
k delete node other >/dev/null
check "it cannot write to the copy" cannot_write reader
check "it has no secret of dsc" no_secret reader
for each in pod notebook job; do
  check "the example $each is one that Kubernetes takes" k -n team-a apply --dry-run=server -f "$examples/$each.yaml"
done
sed 's#busybox:1.37#registry.example/dsc:0.1.0#' "$examples/pod.yaml" | k -n team-a apply -f - >/dev/null
check "the first pod of the guide lists its dataset" eventually sh -c "nsenter --net=/run/netns/hk8s kubectl -n team-a logs first | grep -q '^20 files$'"
gone first
k -n team-a apply -f "$examples/claim.yaml" >/dev/null
pod claimer claim:flowers
check "a pod reads the same dataset through a claim" ready claimer
gone claimer
check "its lease ends with it" eventually not_leased claimer

pod unknown flwers
check "an unknown dataset is an event with the right name" event unknown 'NotFound.*flwers.*dataset: flowers'
show unknown
pod forbidden private
check "a dataset of another namespace is an event" event forbidden 'PermissionDenied.*team-a.*may not read private'
show forbidden
pod url s3://ml-data/flowers/x/
check "a URL that is not allowed is an event" event url 'PermissionDenied.*may not name the source'
show url
pod file file:///etc/
check "no namespace reads files of the node" event file 'PermissionDenied'
gone unknown --wait=false; gone forbidden --wait=false; gone url --wait=false; gone file --wait=false
pod mistaken ''
check "a mistake is an event" event mistaken 'InvalidArgument.*volumeAttributes.dataset'
show mistaken
gone mistaken --wait=false
pod two birds && pod three bees
check "two more datasets fill the node" ready two && ready three
pod fourth large
check "no room is an event with the holders" event fourth 'ResourceExhausted.*leased by pod:team-a/'
show fourth
gone three
check "and the pod runs once a holder has ended" ready fourth 180s
check "what was evicted for it loses its label" eventually not_labelled bees
gone fourth
gone two --force --grace-period=0
check "a pod that is deleted by force holds nothing" eventually not_leased two

pid=$(agent_pid)
kill -9 $pid
check "an agent that is killed takes nothing from its pods" reads reader
pod late birds
check "a pod that comes while it is away runs once it is back" ready late 180s
check "the lease of the first is still there" leased reader
k -n team-a get pod reader -o jsonpath='{.status.phase}' | grep -q Running
end kubelet-node0 -KILL
gone late --wait=false
bash "$(dirname "$0")/kubelet.sh" node0
check "a pod that is deleted while kubelet is away holds nothing once it is back" eventually not_leased late
pod again bees
check "the driver is known to the new kubelet" ready again 120s
check "who read all the time still reads" reads reader
for name in reader again; do gone $name; done
check "no lease is left" eventually nothing_leased
check "no mount is left" nothing_mounted
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
