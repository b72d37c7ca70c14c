#!/usr/bin/env bash
# The component tls/ with a certificate of our own authority that all agents share: they serve each other encrypted, and an
# agent without it gets no token.
set -euo pipefail
. "$(dirname "$0")/functions.sh"
B() { k -n dsc exec "$(agent_of node1)" -c agent -- dsc "$@"; }
T="$W/tls"
authority "$T"
certificate "$T" dsc-agent
k -n dsc create secret generic dsc-agents-tls --from-file="$T/tls.crt" --from-file="$T/tls.key" --from-file="$T/ca.crt" >/dev/null
cd "$W/site/site"
grep -q -- '- ../controller' kustomization.yaml || echo "  - ../controller" >>kustomization.yaml
echo "  - ../tls" >>kustomization.yaml
sed -i 's#^agent: {#agent: {tls: {certFile: /etc/dsc-tls/tls.crt, keyFile: /etc/dsc-tls/tls.key, caFile: /etc/dsc-tls/ca.crt}, #' dsc.yaml
k apply -k . >/dev/null
check "agents restart with certificates" quietly k -n dsc rollout status ds/dsc-agent --timeout=180s
teams
cd "$W"
agents_say() { in_net curl -sf -o /dev/null --max-time 5 "$@"; }
check "they answer to who trusts their authority" eventually agents_say --cacert "$T/ca.crt" --resolve dsc-agent:7070:10.99.0.11 https://dsc-agent:7070/healthz
unencrypted() { ! agents_say http://10.99.0.11:7070/healthz; }
check "and not unencrypted" unencrypted
A evict bees --yes >/dev/null 2>&1 || true
B evict bees --yes >/dev/null 2>&1 || true
from() { local all; all=$(B history "$1") && grep -q "$2" <<<"$all"; }
NODE=node0 pod giver bees && ready giver
NODE=node1 pod taker bees && ready taker
check "a node takes a copy from another, encrypted" from bees 'from node0'
GATES='{name: dsc.io/staged}' NODE=node1 pod queued birds
check "the controller asks for a dataset, encrypted" all "event queued 'Staged.*birds ready'" "ready queued"

# An agent without a certificate, on an address of its own, has a dataset that nobody else has.
mkdir -p "$W/plain"
cat >"$W/plain/dsc.yaml" <<YAML
record: postgres://dsc@$API/dsc
node: plain
cache: {root: $W/plain/cache}
agent: {listen: '$API:7171', tokenFile: $W/site/site/secrets/agents-token}
datasets: {moths: {source: 's3://ml-data/moths/', endpoint: 'http://$API:9000', region: us-east-1}}
YAML
export AWS_ACCESS_KEY_ID=S3RVER AWS_SECRET_ACCESS_KEY=S3RVER
plain() { in_net node "$CHECKOUT/bin/dsc.js" "$@" --config "$W/plain/dsc.yaml"; }
for dsc in A B; do $dsc evict moths --yes >/dev/null 2>&1 || true; done
plain prepare moths --ttl 1h >/dev/null 2>&1
start plain nsenter --net=/run/netns/hk8s node "$CHECKOUT/bin/dsc.js" agent --config "$W/plain/dsc.yaml"
eventually agents_say "http://$API:7171/healthz"
NODE=node1 pod careful moths
check "a pod reads what an agent without certificate has" ready careful
check "from the store" from moths 'from the store.*plain.*does not encrypt'
B history moths | grep "from the store" | head -1
end plain
for name in giver taker queued careful; do gone $name --wait=false; done
check "no lease is left" eventually sh -c "! nsenter --net=/run/netns/hk8s kubectl -n dsc exec $(agent_of node0) -c agent -- dsc leases | grep pod:"
finish
