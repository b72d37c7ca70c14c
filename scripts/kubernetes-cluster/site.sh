#!/usr/bin/env bash
# The project's own kustomization with the values of this cluster, in W/site, applied.
set -euo pipefail
. "$(dirname "$0")/env.sh"
rm -rf "$W/site" && cp -r "$CHECKOUT/scripts/kubernetes" "$W/site"
cd "$W/site/site"
{
  cat <<YAML
record: postgres://dsc@$API/dsc
cache: {root: /cache, maxDatasets: 3, minFree: 64MiB} # as the machine may have less than 20%
agent: {listen: '0.0.0.0:7070', tokenFile: /etc/dsc-token/token, csi: {sources: {team-a: ['hf://lab/*']}}}
stage: {bandwidthLimit: 4MiB/s}
datasets:
YAML
  for name in flowers birds bees moths large; do
    echo "  $name: {source: 's3://ml-data/$name/', endpoint: 'http://$API:9000', region: us-east-1}"
  done
  echo "  private: {source: 's3://ml-data/flowers/', endpoint: 'http://$API:9000', region: us-east-1, namespaces: [team-b]}"
  echo "  vocabulary: {source: 'hf://lab/open', endpoint: '$(cat "$W/services/hub")', namespaces: [team-b]}" # pods may send tokens there
} >dsc.yaml
head -c 32 /dev/urandom | base64 >secrets/agents-token
echo PGPASSWORD=secret >secrets/record.env
printf 'AWS_ACCESS_KEY_ID=S3RVER\nAWS_SECRET_ACCESS_KEY=S3RVER\n' >secrets/s3.env
in_net kubectl taint node --all dsc.io/agent-not-ready=:NoSchedule --overwrite >/dev/null
in_net kubectl apply -k . >/dev/null
in_net kubectl label node --all nvidia.com/gpu.present=true --overwrite >/dev/null
in_net kubectl -n dsc rollout status ds/dsc-agent --timeout=300s
for _ in $(seq 300); do in_net kubectl get csinode -o jsonpath='{.items[*].spec.drivers[*].name}' | grep -q 'dsc.io dsc.io' && exit 0; sleep 1; done
echo "kubelet does not know the driver" && exit 1
