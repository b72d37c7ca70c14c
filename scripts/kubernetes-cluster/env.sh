# Sourced by the others. W: where the programs, images and states of nodes lie, outside the checkout.
W="${DSC_TEST_KUBERNETES:-/var/cache/dsc-test/kubernetes}"
CHECKOUT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export CHECKOUT PATH="$CHECKOUT/node_modules/.bin:$W/bin:$PATH:/usr/sbin:/sbin" KUBECONFIG="$W/pki/admin.conf"
API=10.99.0.1 # the network namespace hk8s: nothing of this leaves the machine
in_net() { nsenter --net=/run/netns/hk8s "$@"; }
# start NAME COMMAND...: in the background, with its pid and log kept
start() {
  local name=$1
  shift
  mkdir -p "$W/log" "$W/pid"
  setsid nice -n 5 "$@" >"$W/log/$name.log" 2>&1 </dev/null &
  echo $! >"$W/pid/$name"
}
# lives NAME: whether the process still runs. Its pid may belong to another one by now.
lives() { [ -e "$W/pid/$1" ] && grep -aqs "${1%%-*}" "/proc/$(cat "$W/pid/$1")/cmdline"; }
end() {
  ! lives "$1" || kill ${2:--TERM} "$(cat "$W/pid/$1")" 2>/dev/null || true
  for _ in $(seq 100); do lives "$1" || break; sleep 0.1; done
  rm -f "$W/pid/$1"
}
