#!/usr/bin/env bash
# A node, which evicts pods when $NODEFS of its disk is left (1%): containerd and kubelet in a mount namespace of their own (their /var/lib/kubelet, /var/lib/dsc, machine-id),
# node0 in the network of the control plane.   node.sh node0
set -euo pipefail
. "$(dirname "$0")/env.sh"
N=$1
D="$W/$N"
mkdir -p "$D"/{containerd,state,cni,kubelet,dsc,pods,containers,log}
[ -f "$D/machine-id" ] || head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$D/machine-id"
I=${N#node}
NET=hk8s
ADDRESS=10.99.0.1
if [ "$I" != 0 ]; then # a second machine: a namespace of its own on the bridge
  NET=hk8s$I
  ADDRESS=10.99.0.1$I
  if ! [ -e /run/netns/$NET ]; then
    ip netns add $NET
    ip -n $NET link set lo up
    ip -n $NET link add eth0 type veth peer name up$I netns hk8s
    ip -n hk8s link set up$I master nodes up
    ip -n $NET addr add $ADDRESS/24 dev eth0
    ip -n $NET link set eth0 up
    ip -n $NET route add default via $API
    ip -n hk8s route add 10.88.$I.0/24 via $ADDRESS
  fi
fi
nsenter --net=/run/netns/$NET sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
cat >"$D/containerd.toml" <<TOML
version = 2
root = "$D/containerd"
state = "$D/state"
[grpc]
  address = "/run/hk8s-$N.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/local/pause:1"
  restrict_oom_score_adj = true # no CAP_SYS_RESOURCE here: without it runc dies with "can't get final child's PID from pipe"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$D/cni"
TOML
cat >"$D/cni/10-pods.conflist" <<JSON
{"cniVersion":"0.4.0","name":"pods","plugins":[
 {"type":"bridge","bridge":"pods$I","isGateway":true,"ipam":{"type":"host-local","dataDir":"$D/ipam",
  "ranges":[[{"subnet":"10.88.$I.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}},
 {"type":"portmap","capabilities":{"portMappings":true}}]}
JSON
printf 'nameserver 127.0.0.1\n' >"$D/resolv.conf"
cat >"$D/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $ADDRESS
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $W/pki/ca.crt}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix:///run/hk8s-$N.sock
cgroupDriver: cgroupfs
cgroupRoot: /hk8s-$N
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
resolvConf: $D/resolv.conf
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi, nodefs.available: "${NODEFS:-1%}", imagefs.available: "1%"}
nodeStatusUpdateFrequency: 5s
syncFrequency: 10s
featureGates: {KubeletCrashLoopBackOffMax: true}
crashLoopBackOff: {maxContainerRestartPeriod: 5s} # agents are killed often
YAML
for each in cpu cpuacct cpuset memory devices freezer blkio pids systemd hugetlb; do # kubelet wants its root to be there
  [ -d /sys/fs/cgroup/$each ] && mkdir -p /sys/fs/cgroup/$each/hk8s-$N
done
cat /sys/fs/cgroup/cpuset/cpuset.cpus >/sys/fs/cgroup/cpuset/hk8s-$N/cpuset.cpus
cat /sys/fs/cgroup/cpuset/cpuset.mems >/sys/fs/cgroup/cpuset/hk8s-$N/cpuset.mems
cat >"$D/boot.sh" <<SH
hostname $N
mount --make-rshared /
own() { mkdir -p /\$2; mount --bind "$D/\$1" "/\$2"; mount --make-rshared "/\$2"; }
own kubelet var/lib/kubelet
own dsc var/lib/dsc
own pods var/log/pods
own containers var/log/containers
mount --bind "$D/machine-id" /etc/machine-id
exec nsenter --net=/run/netns/$NET containerd -c "$D/containerd.toml"
SH
start containerd-$N unshare --mount --uts --propagation private bash "$D/boot.sh"
for _ in $(seq 300); do ctr -a /run/hk8s-$N.sock version >/dev/null 2>&1 && break; sleep 0.2; done
for image in "$W"/img/*.tar; do ctr -a /run/hk8s-$N.sock -n k8s.io images import "$image" >/dev/null; done
for name in registry.example/train:1 docker.io/library/busybox:1.37; do # for the examples
  ctr -a /run/hk8s-$N.sock -n k8s.io images tag --force registry.example/dsc:0.1.0 $name >/dev/null
done
bash "$(dirname "$0")/kubelet.sh" "$N"
for _ in $(seq 300); do in_net kubectl get node $N >/dev/null 2>&1 && break; sleep 1; done
in_net kubectl wait --for=condition=Ready node/$N --timeout=300s
