#!/usr/bin/env bash
# Pods of other shapes, and agents and kubelets that change under them, on node0.
set -euo pipefail
. "$(dirname "$0")/functions.sh"
here=$(cd "$(dirname "$0")" && pwd)
phases() { k -n team-a get pod -o jsonpath='{range .items[*]}{.metadata.name} {.status.phase}{"\n"}{end}'; }
leases_of() { local all; all=$(A leases) && [ "$(grep -c "pod:team-a/$1 " <<<"$all")" = "$2" ]; }
uid() { k -n team-a get pod "$1" -o jsonpath='{.metadata.uid}'; }

teams
k -n team-a apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: shapes}
spec:
  nodeSelector: {kubernetes.io/hostname: node0}
  terminationGracePeriodSeconds: 1
  $RESTRICTED_POD
  initContainers:
    - name: look
      image: registry.example/dsc:0.1.0
      imagePullPolicy: Never
      command: [sh, -c, '[ "\$(find /data -type f | wc -l)" = 20 ]']
      $RESTRICTED
      volumeMounts: [{name: data, mountPath: /data}]
  containers:
    - name: train
      image: registry.example/dsc:0.1.0
      imagePullPolicy: Never
      command: [sh, -c, '[ "\$(find /data /again /part -type f | wc -l)" = 45 ] && exec sleep 600']
      $RESTRICTED
      volumeMounts:
        - {name: data, mountPath: /data}
        - {name: again, mountPath: /again}
        - {name: data, mountPath: /part, subPath: '0'}
  volumes:
    - {name: data, csi: {driver: dsc.io, readOnly: true, volumeAttributes: {dataset: flowers}}}
    - {name: again, csi: {driver: dsc.io, readOnly: true, volumeAttributes: {dataset: flowers}}}
YAML
check "an init container, a second volume of the dataset and a subPath read it" ready shapes
check "by one lease" leases_of shapes 1
gone shapes
check "it ends with the pod" eventually not_leased shapes
k -n team-a apply -f - >/dev/null <<YAML
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: set}
spec:
  serviceName: set
  selector: {matchLabels: {app: set}}
  template:
    metadata: {labels: {app: set}}
    spec:
      nodeSelector: {kubernetes.io/hostname: node0}
      terminationGracePeriodSeconds: 1
      $RESTRICTED_POD
      containers:
        - name: train
          image: registry.example/dsc:0.1.0
          imagePullPolicy: Never
          command: [sh, -c, 'while cat /data/*/* >/dev/null; do sleep 1; done']
          $RESTRICTED
          volumeMounts: [{name: data, mountPath: /data}]
      volumes:
        - {name: data, csi: {driver: dsc.io, readOnly: true, volumeAttributes: {dataset: birds}}}
YAML
check "a pod of a StatefulSet reads" eventually ready set-0
first=$(uid set-0)
gone set-0
check "so does the next one of its name" eventually ready set-0
check "which is another pod" [ "$(uid set-0)" != "$first" ]
check "and has the only lease of that name" eventually leases_of set-0 1
k -n team-a delete statefulset set >/dev/null
check "it ends with the set" eventually not_leased set-0

pod slow large
sleep 4 # the call is held: 64 MiB take 16 s
end kubelet-node0 -KILL
bash "$here/kubelet.sh" node0
check "a pod runs whose kubelet restarted while its dataset came" ready slow 180s
gone slow

names=()
for n in $(seq 20); do COMMAND=$COMPARE NODE=node$((n % 2)) pod "many$n" flowers && names+=("pod/many$n"); done
check "twenty pods read" quietly k -n team-a wait --for=condition=Ready "${names[@]}" --timeout=300s
k -n dsc rollout restart ds/dsc-agent >/dev/null
check "agents are replaced under them" quietly k -n dsc rollout status ds/dsc-agent --timeout=180s
all_run() { [ "$(phases | grep -c '^many.* Running')" = 20 ]; }
check "all still read the right bytes" all_run
check "and hold their leases" eventually sh -c "[ \$(nsenter --net=/run/netns/hk8s kubectl -n dsc exec ds/dsc-agent -c agent -- dsc leases | grep -c pod:team-a/many) = 20 ]"
k -n team-a delete "${names[@]}" --wait=false >/dev/null
check "no lease is left" eventually nothing_leased
for node in node0 node1; do check "no mount is left on $node" eventually mounts $node 0; done
finish
