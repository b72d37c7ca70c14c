# Sourced by the checks: what they ask the cluster, and how they count.
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
k() { in_net kubectl "$@"; }
agent_of() { k -n dsc get pod -l app=dsc-agent --field-selector "spec.nodeName=$1" -o name; }
A() { k -n dsc exec "$(agent_of node0)" -c agent -- dsc "$@"; }
passed=0 failed=0
NODE=node0 SECRET="" RESTART=Never GATES="" ANNOTATIONS="" # of pod; npm has a NODE, too
COMMAND='find /data -type f | wc -l; while cat /data/*/* /data/* >/dev/null 2>&1; [ -n "$(ls /data)" ]; do sleep 1; done'
check() { if "${@:2}"; then passed=$((passed + 1)); echo "ok      $1"; else failed=$((failed + 1)); echo "FAILED  $1" && tell; fi; }
# Prints the state of the cluster when the first check fails: pods, leases, and the logs of all agents, killed ones too.
tell() {
  local file
  [ $failed -le 1 ] || return 0
  for each in 'get pod -A -o wide' '-n team-a describe pod' 'get node -o wide'; do k $each --request-timeout=20s || true; done 2>&1 | grep -vE '^ +(/|Type|----)|MissingClusterDNS'
  for each in leases status; do A $each || true; done
  for file in "$W"/node?/pods/dsc_dsc-agent*/agent/*; do echo "== $file" && tail -50 "$file" | cut -c1-300; done
}
trap '[ $? = 0 ] || [ $failed != 0 ] || tell' EXIT # also if a command outside of a check ended the part
# all 'COMMAND 1' 'COMMAND 2': for check, which takes one
all() { local each; for each in "$@"; do eval "$each" || return 1; done; }
quietly() { "$@" >/dev/null; }
# eventually COMMAND...: within five minutes. Kubelet pauses for up to 122 s before it asks for a volume again.
eventually() {
  local end=$((SECONDS + 300))
  until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; unstick >/dev/null 2>&1 || true; sleep 1; done
}
# Restarts a kubelet that can no longer unmount a volume, as an operator would: if a mount fails after a restart, kubelet
# removes the volume's data file, and needs it for the unmount (kubernetes#126607, open).
unstick() {
  local node stuck
  for node in node0 node1; do
    lives kubelet-$node || continue
    stuck=$(grep -c 'unmounter failed to load volume data file' "$W/log/kubelet-$node.log") || continue
    [ "$stuck" -lt 50 ] || { end kubelet-$node -KILL; bash "$CHECKOUT/scripts/kubernetes-cluster/kubelet.sh" $node; }
  done
}
# Compares a small dataset with its names until a file is gone or differs, then ends with 77, also each time it restarts.
COMPARE='cd /data; while [ ! -e /scratch/wrong ] && [ "$(sha256sum */*.bin | grep -cE "^([0-9a-f]{64})  [0-3]/\1[.]bin$")" = 20 ]; do sleep 2; done; touch /scratch/wrong; exit 77'
# What Pod Security calls restricted, of a pod and of a container.
RESTRICTED_POD='securityContext: {runAsNonRoot: true, runAsUser: 20001, seccompProfile: {type: RuntimeDefault}}'
RESTRICTED='securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}'
# pod NAME DATASET [NAMESPACE]: such a pod of a user on $NODE, or anywhere; $SECRET opens its source,
# $COMMAND reads it at /data and may write to /scratch
pod() {
  local secret="" selector=""
  [ -z "$SECRET" ] || secret=", nodePublishSecretRef: {name: $SECRET}"
  [ -z "$NODE" ] || selector="kubernetes.io/hostname: $NODE"
  k -n "${3:-team-a}" apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, annotations: {$ANNOTATIONS}}
spec:
  restartPolicy: $RESTART
  nodeSelector: {$selector}
  schedulingGates: [$GATES]
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  $RESTRICTED_POD
  containers:
    - name: train
      image: registry.example/dsc:0.1.0
      imagePullPolicy: Never
      command: [sh, -c, '$COMMAND']
      $RESTRICTED
      volumeMounts: [{name: data, mountPath: /data, readOnly: true}, {name: scratch, mountPath: /scratch}]
  volumes:
    - {name: scratch, emptyDir: {}}
    - name: data
      $(if [ "${2#claim:}" != "$2" ]; then echo "persistentVolumeClaim: {claimName: ${2#claim:}}"; else echo "csi: {driver: dsc.io, readOnly: true, volumeAttributes: {dataset: '$2'}$secret}"; fi)
YAML
}
ready() { k -n team-a wait --for=condition=Ready "pod/$1" --timeout="${2:-300s}" >/dev/null; }
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
doctored() {
  { A doctor --json || true; } | jq -e '[.checks[] | {(.name): .status}] | add
    | .kubernetes == "ok" and .kubelet and (.kueue | not)' >/dev/null
}
reads() { [ -n "$(k -n team-a exec "$1" -- ls /data)" ]; }
cannot_write() { local said; ! said=$(k -n team-a exec "$1" -- touch /data/x 2>&1) && grep -q 'Read-only file system' <<<"$said"; }
agents_say() { grep -rq "$1" "$W"/node?/pods/dsc_dsc-agent*/agent; }
# agent_pid NODE, mounter_pid NODE: both nodes share the machine's process ids
agent_pid() {
  local pid
  for pid in $(pgrep --uid 10001 --full "dsc agent --csi"); do grep -qz "^DSC_NODE=$1$" "/proc/$pid/environ" && echo "$pid"; done
}
mounter_pid() { for pid in $(agent_pid "$1"); do pgrep --parent "$pid" --uid 0; done; }
# labels [NODE], labelled DATASET [NODE]
labels() { k get node "${1:-$NODE}" -o go-template='{{range $key, $value := .metadata.labels}}{{$key}}={{$value}} {{end}}'; }
labelled() { local all; all=$(labels "${2:-}") && grep -q "dsc.io/$1=ready" <<<"$all"; }
not_labelled() { local all; all=$(labels "${2:-}") && grep -q hostname <<<"$all" && ! grep -q "dsc.io/$1=" <<<"$all"; }
unlabelled() { local all; all=$(labels "$1") && grep -q hostname <<<"$all" && ! grep -q 'dsc.io/' <<<"$all"; }
no_taint() { local all; all=$(k get node node0 -o json) && grep -q node0 <<<"$all" && ! grep -q agent-not-ready <<<"$all"; }
# denied COMMAND...: with the rights of the agent on node0
denied() {
  local said token
  token=$(k -n dsc exec "$(agent_of node0)" -c agent -- cat /var/run/secrets/kubernetes.io/serviceaccount/token)
  ! said=$(k --kubeconfig=/dev/null --server="https://$API" --certificate-authority="$W/pki/ca.crt" --token="$token" "$@" 2>&1) &&
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
# An authority, and a certificate of it for the DNS name, in a folder.   authority FOLDER; certificate FOLDER NAME
authority() {
  mkdir -p "$1"
  openssl req -x509 -newkey rsa:2048 -nodes -keyout "$1/ca.key" -out "$1/ca.crt" -days 30 -subj /CN=authority 2>/dev/null
}
certificate() {
  openssl req -newkey rsa:2048 -nodes -keyout "$1/tls.key" -out "$1/tls.csr" -subj "/CN=$2" 2>/dev/null
  openssl x509 -req -in "$1/tls.csr" -CA "$1/ca.crt" -CAkey "$1/ca.key" -CAcreateserial -out "$1/tls.crt" -days 30 \
    -extfile <(echo "subjectAltName=DNS:$2") 2>/dev/null
}
teams() {
  for team in team-a team-b; do
    k create ns $team --dry-run=client -o yaml | k apply -f - >/dev/null
    k label ns $team pod-security.kubernetes.io/enforce=restricted --overwrite >/dev/null
  done
}
# Removes what site.sh installs, as the guide says.
uninstall() {
  k -n dsc delete daemonset dsc-agent --cascade=foreground >/dev/null
  k delete -k "$W/site/site" --ignore-not-found >/dev/null
}
# Every object whose name has dsc, of any kind that the API server lists.
names_of_dsc() {
  local kinds all
  kinds=$(k api-resources --verbs=list -o name | grep -v events | paste -sd,)
  all=$(k get "$kinds" -A -o name) && [ -n "$all" ] && { grep dsc <<<"$all" || true; }
}
finish() {
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
}
