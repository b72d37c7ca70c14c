#!/usr/bin/env bash
# Starts the API server and waits until it is ready. There is no kube-proxy: it asks webhooks at the endpoints of their
# Services.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$W/pki"
start apiserver nsenter --net=/run/netns/hk8s kube-apiserver --etcd-servers http://127.0.0.1:2379 \
  --advertise-address $API --bind-address 0.0.0.0 --secure-port 443 --service-cluster-ip-range 10.96.0.0/24 \
  --tls-cert-file api.crt --tls-private-key-file api.key --client-ca-file ca.crt \
  --kubelet-preferred-address-types InternalIP --kubelet-client-certificate admin.crt --kubelet-client-key admin.key \
  --service-account-key-file sa.pub --service-account-signing-key-file sa.key \
  --service-account-issuer https://kubernetes.default.svc --authorization-mode Node,RBAC \
  --enable-admission-plugins NodeRestriction --allow-privileged=true --profiling=false --enable-aggregator-routing=true
for _ in $(seq 120); do in_net kubectl get --raw /readyz >/dev/null 2>&1 && break; sleep 1; done
in_net kubectl get --raw /readyz; echo
