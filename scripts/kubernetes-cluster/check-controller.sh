#!/usr/bin/env bash
# The controller as two pods, and its webhook through its Service with a certificate of our own authority: pods wait for
# their data without a node and then run where it is, whichever of the two is killed.
set -euo pipefail
. "$(dirname "$0")/functions.sh"
T="$W/webhook"
NODE="" # the scheduler decides
GATE='{name: dsc.io/staged}'
gated() { GATES=$GATE pod "$@"; }
field() { k -n team-a get pod "$1" -o jsonpath="{$2}"; }
waits() { [ "$(field "$1" '.status.conditions[?(@.type=="PodScheduled")].reason}{.spec.nodeName')" = SchedulingGated ]; }
on() { [ "$(field "$1" .spec.nodeName)" = "$2" ]; }
node_of() { field "$1" .spec.nodeName; }
not_queued() { local all; all=$(A leases) && ! grep -q 'queued:' <<<"$all"; }
leader() { k -n dsc get lease dsc-controller -o jsonpath='{.spec.holderIdentity}'; }
one_leads() { [[ $(leader) = dsc-controller-* ]]; }
other_leads() { one_leads && [ "$(leader)" != "$1" ]; }
controllers() { k -n dsc get pod -l app=dsc-controller -o jsonpath="{range .items[*]}{.metadata.name} $1{\"\n\"}{end}"; }
place_of() { controllers '{.spec.nodeName}' | sed -n "s/^$1 //p"; }
nodes_with() { A status --json | jq -r ".copies[] | select(.dataset == \"$1\" and .state == \"ready\") | .node" | sort -u; }
# controller_pid POD: both nodes share the machine's process ids
controller_pid() {
  local pid
  for pid in $(pgrep --uid 10001 --full 'dsc agent --controller'); do grep -qz "^HOSTNAME=$1$" "/proc/$pid/environ" && echo "$pid"; done
}
# serves ADDRESS: with a certificate of the authority in $T
serves() {
  in_net curl -s -o /dev/null --max-time 5 --cacert "$T/ca.crt" --connect-to "dsc-webhook.dsc.svc:9443:$1:9443" https://dsc-webhook.dsc.svc:9443/
}
all_serve() {
  local all address
  all=$(controllers '{.status.podIP}')
  for address in $(cut -d' ' -f2 <<<"$all"); do serves "$address" || return 1; done
}
put_certificate() {
  k -n dsc create secret tls dsc-webhook --cert="$T/tls.crt" --key="$T/tls.key" --dry-run=client -o yaml | k apply -f - >/dev/null
}
trust() {
  k patch mutatingwebhookconfiguration dsc-webhook --type=json \
    -p "[{\"op\": \"add\", \"path\": \"/webhooks/0/clientConfig/caBundle\", \"value\": \"$(base64 -w0 "$T/ca.crt")\"}]" >/dev/null
}
events_of() { k -n team-a get events --field-selector involvedObject.name="$1" -o custom-columns=REASON:.reason,MESSAGE:.message; }

teams
cd "$W/site/site"
printf '  - %s\n' ../controller ../webhook >>kustomization.yaml
k apply -k . >/dev/null
cd "$W"
authority "$T" && certificate "$T" dsc-webhook.dsc.svc
check "one of two controllers leads" eventually one_leads
put_certificate && trust # after its pods have started, as cert-manager does
check "both serve the webhook once its certificate is there" quietly k -n dsc rollout status deploy/dsc-controller --timeout=120s
controllers '{.spec.nodeName}'

# Waiting for data.
gated first large
check "a gated pod waits without a node" eventually waits first
check "its event shows the download" event first 'Staging.*staging on node.: large'
NODE=node0 pod birder birds # its node has a label by the time that others look for it
gated unknown flwers 2>"$W/log/warned"
check "an unknown dataset is a warning at once" grep 'Warning.*no dataset is called "flwers"; try: dataset: flowers' "$W/log/warned"
check "and an event" event unknown 'StagingRefused.*no dataset is called "flwers"; try: dataset: flowers'
check "the pod does not start" waits unknown
check "the gated pod runs once its data is there" ready first 60s
there=$(node_of first) other=node0
[ "$there" = node1 ] || other=node1
check "where it is, and only there" [ "$(nodes_with large)" = "$there" ]
check "it holds its own lease" leased first
events_of first
events_of unknown
gone unknown --wait=false

# The webhook.
ready birder && eventually labelled birds node0
for at in 1 2 3 4; do pod near$at birds; done
for at in 1 2 3 4; do check "pod $at goes where its data is" eventually on near$at node0; done
ANNOTATIONS='dsc.io/wait: staged' pod asked moths
check "a pod gets the gate that it asks for, and runs" all "event asked 'Staged.*moths ready'" "ready asked"
gone asked --wait=false
for at in 1 2 3 4; do gone near$at --wait=false; done
k -n team-a create -f - --dry-run=client -o json >"$W/asking.json" <<YAML
apiVersion: v1
kind: Pod
metadata: {name: asking, annotations: {dsc.io/wait: staged}}
spec:
  $RESTRICTED_POD
  containers: [{name: train, image: x, $RESTRICTED}]
  volumes: [{name: data, csi: {driver: dsc.io, readOnly: true, volumeAttributes: {dataset: flowers}}}]
YAML
gets_gate() { local all; all=$(k -n team-a create --dry-run=server -o json -f "$W/asking.json") && grep -q '"dsc.io/staged"' <<<"$all"; }
check "the API server asks it" gets_gate

# The leader is killed while pods wait. Its kubelet is held up, so that it does not come back; that node is not ready then.
for at in 1 2 3 4; do NODE=$other gated waiting$at large; done
check "pods wait for a download on the other node" event waiting1 "Staging.*staging on $other: large"
old=$(leader) at=$(place_of "$(leader)")
kill -STOP "$(cat "$W/pid/kubelet-$at")"
kill -9 $(controller_pid "$old")
began=$SECONDS
check "the other takes over from a leader that is killed" eventually other_leads "$old"
echo "after $((SECONDS - began)) s"
kill -CONT "$(cat "$W/pid/kubelet-$at")"
for at in 1 2 3 4; do check "pod $at that waited runs with its data" all "ready waiting$at 100s" "event waiting$at 'Staged.*large ready'"; done
kill -9 $(controller_pid "$(leader)")
NODE=$there gated after bees
check "one that comes when the next leader is killed runs, too" ready after 60s

# No room: others hold three datasets on the node.
NODE=$other pod other birds && NODE=$other pod holder moths && ready other && ready holder
NODE=$other gated full flowers
check "no room is an event" event full 'StagingRefused.*no node has room: .*maxDatasets allows 3 and 3 are taken'
events_of full
gone holder --wait=false

# A new certificate, of a new authority, and new pods.
authority "$T" && certificate "$T" dsc-webhook.dsc.svc
before=$(controllers '{.status.containerStatuses[0].restartCount}')
put_certificate && trust
began=$SECONDS
check "both serve with a renewed certificate" eventually all_serve
echo "after $((SECONDS - began)) s"
check "and were not restarted for it" [ "$(controllers '{.status.containerStatuses[0].restartCount}')" = "$before" ]
k -n dsc rollout restart deploy/dsc-controller >/dev/null
missed=0 asked=0
while ! k -n dsc rollout status deploy/dsc-controller --watch=false | grep -q 'successfully rolled out'; do
  gets_gate || missed=$((missed + 1))
  asked=$((asked + 1))
done
for _ in $(seq 20); do gets_gate || missed=$((missed + 1)); asked=$((asked + 1)); done
echo "$missed of $asked pods without a gate"
check "no pod misses its gate while the controllers are replaced" [ $missed = 0 ]
check "the pod that found no room runs once a holder has ended" ready full 100s
for name in first birder after other full waiting1 waiting2 waiting3 waiting4; do gone $name --wait=false; done
check "no lease is left" all "eventually not_queued" "eventually nothing_leased"
finish
