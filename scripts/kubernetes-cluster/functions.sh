# Sourced by the checks: what they ask the cluster, and how they count.
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
k() { in_net kubectl "$@"; }
agent_of() { k -n dsc get pod -l app=dsc-agent --field-selector "spec.nodeName=$1" -o name; }
A() { k -n dsc exec "$(agent_of node0)" -c agent -- dsc "$@"; }
passed=0 failed=0
NODE=node0 SECRET="" RESTART=Never # of pod; npm has a NODE, too
check() { if "${@:2}"; then passed=$((passed + 1)); echo "ok      $1"; else failed=$((failed + 1)); echo "FAILED  $1"; fi; }
# eventually COMMAND...: within 100 s
eventually() { for _ in $(seq 100); do "$@" >/dev/null 2>&1 && return 0; sleep 1; done; return 1; }
# pod NAME DATASET [NAMESPACE]: a pod of a user on $NODE, with what Pod Security calls restricted; $SECRET opens its source
pod() {
  local secret=""
  [ -z "$SECRET" ] || secret=", nodePublishSecretRef: {name: $SECRET}"
  k -n "${3:-team-a}" apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: $RESTART
  nodeSelector: {kubernetes.io/hostname: $NODE}
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
      $(if [ "${2#claim:}" != "$2" ]; then echo "persistentVolumeClaim: {claimName: ${2#claim:}}"; else echo "csi: {driver: dsc.io, readOnly: true, volumeAttributes: {dataset: '$2'}$secret}"; fi)
YAML
}
ready() { k -n team-a wait --for=condition=Ready "pod/$1" --timeout="${2:-60s}" >/dev/null; }
gone() { k -n team-a delete pod "$1" --ignore-not-found "${@:2}" >/dev/null 2>&1; }
# Each reads all of the output before it searches it: a command that fails must not look like one that found nothing.
leased() { local all; all=$(A leases) && grep -q "pod:team-a/$1 " <<<"$all"; }
not_leased() { local all; all=$(A leases) && ! grep -q "pod:team-a/$1 " <<<"$all"; }
nothing_leased() { local all; all=$(A leases) && ! grep -q pod: <<<"$all"; }
# mounts NODE COUNT
mounts() {
  local all; all=$(nsenter --mount="/proc/$(cat "$W/pid/containerd-$1")/ns/mnt" cat /proc/self/mountinfo) &&
    [ -n "$all" ] && [ "$(grep -c ' /var/lib/kubelet/pods/[^ ]*kubernetes.io~csi' <<<"$all")" = "$2" ]
}
event() { eventually sh -c "nsenter --net=/run/netns/hk8s kubectl -n ${3:-team-a} describe pod $1 | grep -q '$2'"; }
show() { k -n team-a describe pod "$1" | sed -n '/^Events/,$p' | grep -E "FailedMount" | tail -1 | cut -c1-1000; }
reads() { [ -n "$(k -n team-a exec "$1" -- ls /data)" ]; }
cannot_write() { local said; ! said=$(k -n team-a exec "$1" -- touch /data/x 2>&1) && grep -q 'Read-only file system' <<<"$said"; }
# agent_pid NODE: both nodes share the machine's process ids
agent_pid() {
  local pid
  for pid in $(pgrep --uid 10001 --full "dsc agent --csi"); do grep -qz "^DSC_NODE=$1$" "/proc/$pid/environ" && echo "$pid"; done
}
labels() { k get node "$NODE" -o go-template='{{range $key, $value := .metadata.labels}}{{$key}}={{$value}} {{end}}'; }
labelled() { local all; all=$(labels) && grep -q "dsc.io/$1=ready" <<<"$all"; }
not_labelled() { local all; all=$(labels) && grep -q hostname <<<"$all" && ! grep -q "dsc.io/$1=" <<<"$all"; }
no_taint() { local all; all=$(k get node node0 -o json) && grep -q node0 <<<"$all" && ! grep -q agent-not-ready <<<"$all"; }
# denied COMMAND...: with the rights of the agent on node0
denied() {
  local said token
  token=$(k -n dsc exec "$(agent_of node0)" -c agent -- cat /var/run/secrets/kubernetes.io/serviceaccount/token)
  ! said=$(k --kubeconfig=/dev/null --server="https://$API:6443" --certificate-authority="$W/pki/ca.crt" --token="$token" "$@" 2>&1) &&
    grep -q 'an agent changes' <<<"$said"
}
no_secret() { local all; all=$(k -n team-a exec "$1" -- env) && [ -n "$all" ] && ! grep -q 'PGPASSWORD\|AWS_\|DSC_' <<<"$all"; }
hub() { cat "$W/services/hub"; }
token_nowhere() {
  local pid
  for pid in $(pgrep --full "dsc agent --csi"); do cat "/proc/$pid/environ" "/proc/$pid/cmdline"; done >"$W/log/agents.log"
  grep -rq nodePublishVolume "$W"/node0/pods && # their logs lie there
    ! grep -rq hf_kubernetes "$W/log" "$W"/node?/{pods,dsc,kubelet/plugins} "$W/services/pg"
}
teams() {
  for team in team-a team-b; do
    k create ns $team --dry-run=client -o yaml | k apply -f - >/dev/null
    k label ns $team pod-security.kubernetes.io/enforce=restricted --overwrite >/dev/null
  done
}
finish() {
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
}
