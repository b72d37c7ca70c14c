#!/usr/bin/env bash
# Pods, refusals, rights, and what a killed agent or kubelet leaves, on node0.
set -euo pipefail
. "$(dirname "$0")/functions.sh"

teams
pod reader flowers
check "a pod in a restricted namespace reads its dataset by four lines" ready reader
check "it holds the lease" leased reader
check "its node names the dataset in a label" eventually labelled flowers
check "no agent misses a door that nobody gave it" all 'agents_say serves' '! agents_say "no door"'
check "the startup taint is gone" eventually no_taint
check "dsc doctor in an agent finds its node, kubelet's room and no Kueue" doctored
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
check "two more datasets fill the node" all "ready two" "ready three"
pod fourth large
check "no room is an event with the holders" event fourth 'ResourceExhausted.*leased by pod:team-a/'
show fourth
gone three
check "and the pod runs once a holder has ended" ready fourth
check "what was evicted for it loses its label" eventually not_labelled bees
gone fourth
gone two --force --grace-period=0
check "a pod that is deleted by force holds nothing" eventually not_leased two

kill -9 $(agent_pid node0)
check "an agent that is killed takes nothing from its pods" reads reader
pod late birds
check "a pod that comes while it is away runs once it is back" ready late
check "the lease of the first is still there" leased reader
end kubelet-node0 -KILL
gone late --wait=false
bash "$(dirname "$0")/kubelet.sh" node0
check "a pod that is deleted while kubelet is away holds nothing once it is back" eventually not_leased late
pod again bees
check "the driver is known to the new kubelet" ready again
check "who read all the time still reads" reads reader
k -n team-a create secret generic hub --from-literal=HF_TOKEN=hf_kubernetes --from-literal=HF_ENDPOINT=$(hub) >/dev/null
k -n team-a create secret generic wrong --from-literal=token=hf_wrong --from-literal=HF_ENDPOINT=$(hub) >/dev/null
k -n team-b create secret generic hub --from-literal=HF_TOKEN=hf_kubernetes --from-literal=HF_ENDPOINT=$(hub) >/dev/null
SECRET=hub pod model hf://lab/model
check "a pod reads a private model with its own Secret" ready model
SECRET=wrong pod guesser hf://lab/model2
check "a wrong token opens nothing" event guesser 'NotFound.*private'
show guesser
SECRET=hub pod foreign hf://lab/model team-b
check "nor does a right one where the namespace may not name the URL" event foreign 'PermissionDenied.*may not name' team-b
check "the token is in no file, log or environment of an agent" token_nowhere
k -n team-b delete pod foreign --wait=false >/dev/null
for name in reader again model guesser; do gone $name; done
check "no lease is left" eventually nothing_leased
check "no mount is left" eventually mounts node0 0
finish
