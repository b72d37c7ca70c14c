#!/usr/bin/env bash
# The examples, unchanged but for a public image, on both nodes: the test image has a "python" and a "torchrun" that count
# files, and each node says that it has 8 GPUs.
set -euo pipefail
. "$(dirname "$0")/functions.sh"
examples="$CHECKOUT/scripts/kubernetes/examples"
T() { k -n team-a "$@"; }
# says TEXT kubectl-logs-words...: within 100 s
says() { local text=$1; shift; for _ in $(seq 100); do T logs "$@" 2>/dev/null | grep -qx "$text" && return 0; sleep 1; done; return 1; }
completes() { T wait --for=condition=Complete "job/$1" --timeout=120s >/dev/null; }

teams
for node in node0 node1; do
  k patch node $node --subresource=status --type=merge -p '{"status": {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": "8"}}}' >/dev/null
done
T apply -f "$examples/pod.yaml" >/dev/null
check "the first pod of the guide lists its dataset" says '20 files' first
gone first
T apply -f "$examples/claim.yaml" >/dev/null
pod claimer claim:flowers
check "a pod reads the same dataset through a claim" ready claimer
gone claimer
check "its lease ends with it" eventually not_leased claimer
T apply -f "$examples/job.yaml" >/dev/null
check "the Job trains" all "completes train-flowers" "says 'rank 0: 20 files' job/train-flowers"
T apply -f "$examples/torchrun.yaml" >/dev/null
check "torchrun trains" completes torchrun
for rank in 0 1; do check "rank $rank read the dataset" says "rank $rank: 20 files" -l job-name=torchrun; done
check "each on its own node" [ "$(T get pod -l job-name=torchrun -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | grep -c node)" = 2 ]
k patch --local -f "$examples/notebook.yaml" -o yaml \
  -p '{"spec": {"containers": [{"name": "notebook", "image": "registry.example/train:1", "command": ["sleep", "600"]}]}}' | T apply -f - >/dev/null
check "the notebook has its dataset" all "ready notebook" "reads notebook"
gone notebook --force --grace-period=0
check "pods that have completed hold nothing" eventually nothing_leased

# The controllers of these have webhooks, which the API server finds through Services; nothing here routes those. So their
# definitions alone are installed, and the API server compares the examples with them.
while read -r example module file; do
  folder=$(cd / && go mod download -json "$module" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  k apply --server-side -f "$folder/$file" >/dev/null
  check "the example $example is one that its definition takes" eventually k -n team-b apply --dry-run=server --validate=strict -f "$examples/$example.yaml"
done <<'END'
jobset sigs.k8s.io/jobset@v0.10.1 config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml
trainjob github.com/kubeflow/trainer/v2@v2.2.0 manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml
kserve github.com/kserve/kserve@v0.16.0 config/crd/full/serving.kserve.io_inferenceservices.yaml
END
finish
