#!/usr/bin/env bash
# How long pods wait once their data is there: a copy that is ready is published by a client of the plugin's socket, and
# pods on two nodes stage from a source of known speed, of which some take longer than kubelet waits for a call.
#   check-starts.sh [SECONDS...]: how long the stagings take (5 to 300 s). By hand: it takes a minute more than the longest.
# Kubelet looks whether a pod's volumes are mounted for 123 s, then not for 10 to 15 s, unless an agent wakes it.
set -euo pipefail
. "$(dirname "$0")/functions.sh"
here=$(cd "$(dirname "$0")" && pwd)
NOTES="$W/log/slow-source.notes"
[ $# -gt 0 ] || set -- $(seq 5 5 100) $(seq 138 23 300)
STAGINGS=$(printf '%s\n' "$@" | sort -nu) LONGEST=$(printf '%s\n' "$@" | sort -n | tail -n 1)
names=()
away() { # the configuration before
  [ ${#names[@]} = 0 ] || k -n team-a delete "${names[@]}" --wait=false
  end slow-source
  cp "$W/site/before/"* "$W/site/site"
  k apply -k "$W/site/site"
  k -n dsc rollout status ds/dsc-agent --timeout=180s
} >/dev/null 2>&1
# percentiles TITLE: of the numbers read, in ms
percentiles() {
  sort -n | awk -v title="$1" '{ all[NR] = $1 } function at(ratio) { return all[int(NR * ratio + 0.9999)] }
    END { printf "%s: %d, p50 %d ms, p95 %d ms, most %d ms\n", title, NR, at(0.5), at(0.95), all[NR] }'
}
# starts: of each pod its staging's seconds, and how long after its last byte it was published and then ran, in ms
starts() {
  local seconds last published ran
  A history --ndjson --limit 1000 --since 2h >"$W/log/history"
  for seconds in $STAGINGS; do
    last=$(sed -n "s/^slow-$seconds //p" "$NOTES" | sort -n | tail -n 1)
    published=$(jq -r "select(.kind == \"staged\" and .dataset == \"slow-$seconds\") | .at" "$W/log/history")
    published=$(date -d "$published" +%s%3N)
    ran=$(k -n team-a logs "slow-$seconds")
    echo "$seconds $((published - last)) $((ran - published)) $((ran - last))"
  done
}

# patched POD BODY WORDS: node0's agent patches a pod; the API server answers with these words
patched() {
  local token
  token=$(k -n dsc exec "$(agent_of node0)" -c agent -- cat /var/run/secrets/kubernetes.io/serviceaccount/token)
  in_net curl -s --cacert "$W/pki/ca.crt" -H "Authorization: Bearer $token" -X PATCH --data "$2" \
    -H 'Content-Type: application/merge-patch+json' "https://$API/api/v1/namespaces/team-a/pods/$1" | grep -q "$3"
}

teams
pod reader flowers && pod ended birds
check "pods read their datasets" all "ready reader" "ready ended"
gone ended
uid=$(k -n team-a get pod reader -o jsonpath='{.metadata.uid}')
warm() {
  nsenter --mount="/proc/$(cat "$W/pid/containerd-node0")/ns/mnt" node "$here/warm-publish.mjs" "$CHECKOUT" "$uid" "$@"
}
uptime
check "a copy that is ready is published again and again" all "warm 200 1" "warm 200 8"

mkdir -p "$W/site/before"
cp "$W/site/site"/*.yaml "$W/site/before"
trap away EXIT
rm -f "$NOTES"
start slow-source nsenter --net=/run/netns/hk8s node "$here/slow-source.mjs" $API "$NOTES"
in_net node "$here/put-objects.mjs" "$CHECKOUT" http://$API:9000 slow $STAGINGS
# Without the node's limit on downloads: what the source has sent would wait for it in the kernel's buffers.
sed -i "s/maxDatasets: 3/maxDatasets: 60/; /^stage: {bandwidthLimit/d" "$W/site/site/dsc.yaml"
for seconds in $STAGINGS; do
  echo "  slow-$seconds: {source: 's3://ml-data/slow-$seconds/', endpoint: 'http://$API:9001', region: us-east-1}"
done >>"$W/site/site/dsc.yaml"
k apply -k "$W/site/site" >/dev/null
k -n dsc rollout status ds/dsc-agent --timeout=180s >/dev/null
n=0
for seconds in $STAGINGS; do
  COMMAND='date +%s%3N; sleep 1800' NODE=node$((n++ % 2)) pod slow-$seconds slow-$seconds
  names+=("pod/slow-$seconds")
done
NODE=node1 pod elsewhere flowers
names+=(pod/elsewhere)
check "an agent sets dsc.io/mounted of a pod on its node" \
  eventually patched reader '{"metadata": {"annotations": {"dsc.io/mounted": "now"}}}' '"dsc.io/mounted": *"now"'
check "no other annotation" patched reader '{"metadata": {"annotations": {"other": "1"}}}' 'an agent changes the annotation'
check "nothing else of it" patched reader '{"spec": {"activeDeadlineSeconds": 1}}' 'an agent changes nothing else'
check "and no pod of another node" \
  patched elsewhere '{"metadata": {"annotations": {"dsc.io/mounted": "now"}}}' 'an agent changes pods of its own node'
check "${#names[@]} pods run" quietly k -n team-a wait --for=condition=Ready "${names[@]}" --timeout=$((LONGEST + 180))s
starts >"$W/log/starts"
echo "staging, s; last byte to published, then to running, and both, ms" && cat "$W/log/starts"
awk '{ print $4 }' "$W/log/starts" | percentiles "last byte to running"
awk '$1 > 110 { print $4 }' "$W/log/starts" | percentiles "of them, stagings above 110 s"
check "each within 30 s of its last byte" [ "$(awk '$4 > 30000' "$W/log/starts" | wc -l)" = 0 ]
uptime
gone reader --wait=false
finish
