#!/usr/bin/env bash
# Makes the packages and tries each where a newcomer would: the executable and the deb in a bare Debian 12 that
# debootstrap makes (no Node, npm or Python), the wheel in a fresh virtual environment without Node on PATH, the npm
# tarball in an empty folder without network. Needs root for the bare Debian, pip and Go. With --e2e the end-to-end tests
# run against the executable, too; with --arm64 all of it is made for arm64, where it is looked at and not run.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/node_modules/.bin:$PATH:/usr/sbin:/sbin"
packages="$PWD/dist-packages"
npm run --silent build
rm -rf "$packages"
work="$(mktemp -d)"
trap '{ umount "$work/root/proc" 2>/dev/null || true; }; chmod -R u+w "$work"; rm -rf --one-file-system "$work"' EXIT
node -e 'import("./dist/testing/signed-release.js").then(({ makeKeyPair }) => makeKeyPair(process.argv[1]))' "$work/key"
node scripts/package/package.mjs --output "$packages" --sign "$work/key"
version="$(node -p 'require("./package.json").version')"
architecture="$(node -p process.arch)"
program="$packages/dsc-linux-$architecture"

say() { printf '== %s\n' "$*"; }

say "checksums, what is inside, and its licences"
(cd "$packages" && sha256sum --check --quiet SHA256SUMS && [ "$(grep -c . SHA256SUMS)" = 7 ])
node -e '
  const { components } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"))
  const names = components.map(({ name }) => name)
  for (const name of ["node", ...Object.keys(require("./package.json").dependencies)])
    if (!names.includes(name)) throw new Error(`${name} is not in the SBOM`)
' "$packages/dsc-$version.cdx.json"
for name in Node.js better-sqlite3 react; do
  grep -q "^$name [0-9]" "$packages/.work/linux-$architecture/program/THIRD-PARTY-LICENSES.txt"
done

# The newest GLIBC_x that a file asks for.
needs_glibc() { readelf -W --dyn-syms "$1" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -1; }
runs_with_glibc() {
  local needed
  for file in "$@"; do
    needed="$(needs_glibc "$file")"
    [ -n "$needed" ] || { say "not known: which glibc $file needs"; return 1; }
    [ "$(printf '%s\n2.34\n' "$needed" | sort -V | tail -1)" = 2.34 ] || { say "$file needs glibc $needed"; return 1; }
  done
}
if command -v readelf >/dev/null; then
  say "nothing needs a newer glibc than 2.34, as the wheel, the deb and the rpm say"
  runs_with_glibc "$program" "$packages/.work/linux-$architecture/program/node_modules/better-sqlite3/prebuilds/linux-$architecture.node"
else
  say "not tried: which glibc is needed, for there is no readelf"
fi

say "the executable, made once more elsewhere, has the same bytes"
node scripts/package/package.mjs executable --output "$work/again/below" --sign "$work/key" >/dev/null
cmp "$program" "$work/again/below/dsc-linux-$architecture"
rm -r "$work/again"

say "the executable replaces itself by a signed one"
install -m 751 "$program" "$work/own" && printf x >>"$work/own"
"$work/own" self update "$packages" >"$work/updated"
grep -q "^replaced $work/own" "$work/updated"
cmp "$program" "$work/own" && [ "$(stat -c %a "$work/own")" = 751 ]
# refused <what helps> <dsc…>: leaves what others installed to them
refused() { local hint="$1"; shift; if "$@" self update / >/dev/null 2>"$work/refused"; then exit 1; fi; grep -q "$hint" "$work/refused"; }

compressed="$(xz -T0 -3 -c "$program" | wc -c)"
say "compressed, the executable has $compressed bytes"
[ "$compressed" -le 60000000 ]

# What dsc is for, in a few lines, for any shell: stage, look, refuse, clean up.
cat >"$work/tour.sh" <<'TOUR'
set -eu
mkdir -p /tmp/tour/data && cd /tmp/tour && echo sample >data/1.txt
path="$(dsc prepare file:///tmp/tour/data/ --task tour)"
grep -q sample "$path/1.txt"
[ "$(dsc prepare file:///tmp/tour/data/ --task tour)" = "$path" ]
dsc status | grep -q 'KEPT BY'
dsc doctor >/dev/null
dsc feed plan "$path" --batch 1 >/dev/null
if dsc prepare flower 2>error; then exit 1; else [ $? = 4 ]; fi
dsc release --all --task tour && dsc evict data --yes >/dev/null 2>&1 || dsc cleanup
rm -rf /tmp/tour
TOUR

if [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null; then
  root="$work/root"
  debootstrap --variant=minbase bookworm "$root" >"$work/debootstrap.log"
  inside() { chroot "$root" env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME="${home:-/root}" "$@"; }
  if inside sh -c 'command -v node || command -v npm || command -v python3'; then exit 1; fi

  say "the executable in a bare Debian"
  install -m 755 "$program" "$root/usr/local/bin/dsc"
  cp "$work/tour.sh" "$root/tour.sh"
  inside sh /tour.sh

  say "64 first starts at once, then a home that cannot be written"
  mkdir "$root/many"
  home=/many inside sh -c 'for i in $(seq 64); do dsc --version >/many/$i & done; wait; [ "$(sort -u /many/[0-9]* | wc -l)" = 1 ]'
  [ "$(ls "$root/many/.cache/dsc-program" | wc -l)" = 1 ]
  mkdir "$root/frozen" && mount -t tmpfs -o ro tmpfs "$root/frozen"
  home=/frozen inside dsc --version
  umount "$root/frozen"
  rm -rf "$root/usr/local/bin/dsc" "$root/many" "$root/root/.cache" "$root"/{tmp,var/tmp,dev/shm}/dsc-program-0

  say "the steps of the container image"
  install -m 755 "$program" "$root/usr/bin/dsc"
  inside sh -ec "$(sed -n '/^RUN /,/[^\\]$/p' scripts/container/Dockerfile | sed '1s/^RUN //')"
  mount -t proc proc "$root/proc" # by it the program knows where it is installed
  user="$(sed -n 's/^USER //p' scripts/container/Dockerfile)"
  as_user() { chroot --userspec="$user" "$root" env -i PATH=/usr/bin:/bin HOME=/nonexistent "$@"; }
  [ "$(as_user dsc --version)" = "$version" ]
  [ -z "$(find "$root/tmp" "$root/var/tmp" "$root/dev/shm" -name 'dsc-program-10001*')" ] # nothing was unpacked anew
  as_user sh -c 'touch /cache/a && rm /cache/a'
  umount "$root/proc"
  inside userdel dsc
  rm -rf "$root/usr/bin/dsc" "$root/usr/lib/dsc" "$root/cache"

  say "the deb: in, set up twice, upgraded, out"
  cp "$packages/dsc_${version}_"*.deb "$root/dsc.deb"
  inside dpkg --install /dsc.deb >"$work/installed"
  grep -q 'sudo dsc setup' "$work/installed"
  mount -t proc proc "$root/proc" # by it the program knows where it is installed
  inside sh /tour.sh
  refused 'sudo apt install' inside dsc
  umount "$root/proc"
  inside test -e /usr/lib/systemd/system/dsc-agent.service -a -e /usr/share/man/man1/dsc-prepare.1.gz
  [ ! -e "$root/root/.cache/dsc-program" ] # it is there already, for every user
  mkdir "$root/srv/flowers" && echo rose >"$root/srv/flowers/a.txt"
  # In namespaces of its own, so that no service outlives it.
  cat >"$work/set-up.sh" <<'SETUP'
set -eu
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
ip link set lo up
inside() { chroot "$root" env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root "$@"; }
inside dsc setup --yes --cache-root /nvme/dsc --dataset flowers=/srv/flowers >"$work/first"
inside sh -c "$(sed -n 's/^  install/install/p' "$work/first")" >"$work/service" 2>&1 & # what a supervisor would run
for _ in $(seq 100); do [ -S "$root/run/dsc/dsc.sock" ] && break || sleep 0.1; done
inside dsc setup --yes --cache-root /nvme/dsc --dataset flowers=/srv/flowers >"$work/second"
grep -q '^nothing to change' "$work/second" && grep -q '^flowers: 1 file' "$work/second"
[ "$(inside su ada -c 'cd && cat "$(dsc prepare flowers --task ada)/a.txt"')" = rose ]
SETUP
  inside useradd --create-home --shell /bin/sh ada
  root="$root" work="$work" unshare --mount --net --pid --fork --kill-child sh "$work/set-up.sh"
  echo '# ours' >>"$root/etc/dsc/dsc.yaml"
  inside dpkg --install /dsc.deb >/dev/null
  grep -q '# ours' "$root/etc/dsc/dsc.yaml"
  inside dpkg --remove dsc >/dev/null
  [ ! -e "$root/usr/bin/dsc" ] && [ ! -e "$root/usr/lib/dsc" ] && [ -e "$root/etc/dsc/dsc.yaml" ]
  inside dpkg --purge dsc >/dev/null
  [ ! -e "$root/etc/dsc" ] && [ -e "$root/nvme/dsc/copies/flowers" ] && [ -e "$root/var/lib/dsc/cache" ]
else
  say "not tried: a bare Debian, which needs root and debootstrap"
fi

say "the executable's agent, whose gateway answers in a thread for each processor, four at most"
mkdir -p "$work/agent"
printf 'agent: { listen: "127.0.0.1:0" }\ndatasets: { all: { source: "s3://bucket/" } }\n' >"$work/agent/dsc.yaml"
env -i PATH=/usr/bin:/bin HOME="$work/agent" "$program" --config "$work/agent/dsc.yaml" agent \
  --gateway 127.0.0.1:0 --json >"$work/agent/out" &
agent=$!
for _ in $(seq 50); do [ -s "$work/agent/out" ] && break || sleep 0.2; done
port="$(sed -n 's|.*"gateway":"http://127.0.0.1:\([0-9]*\)".*|\1|p' "$work/agent/out")"
listeners() { grep -c "^ *[0-9]*: 0100007F:$(printf %04X "$port") [0-9A-F:]* 0A" /proc/net/tcp; }
threads="$(($(nproc) < 4 ? $(nproc) : 4))"
for _ in $(seq 50); do [ "$(listeners)" = "$threads" ] && break || sleep 0.2; done
[ "$(listeners)" = "$threads" ]
kill "$agent" && wait "$agent" || [ $? = 143 ]

say "the wheel without Node"
python3 -m venv "$work/venv"
alone() { env -i PATH=/usr/bin:/bin HOME="$work/home" "$@"; }
alone "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$packages"/dsc_data-*manylinux*.whl
[ "$(alone "$work/venv/bin/dsc" --version)" = "$version" ]
refused "$work/venv/bin/python -m pip install" alone "$work/venv/bin/dsc"
alone "$work/venv/bin/python" -c '
import subprocess, sys
import dsc
from dsc.program import find_program
program, = find_program()
assert program.startswith(sys.prefix), program
assert subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()
'
mkdir -p "$work/samples" "$work/empty" && for i in 0 1 2 3 4; do echo "sample $i" >"$work/samples/$i.txt"; done
env -i PATH="$work/empty" HOME="$work/home" "$work/venv/bin/python" -c '
import sys
import dsc
feed = dsc.FeedDataset(sys.argv[1], batch_size=2, last="uneven", rank=0, world=1)
samples = sorted(bytes(sample.data) for batch in feed for sample in batch)
assert samples == [b"sample %d\n" % i for i in range(5)], samples
feed.close()
' "$work/samples"

say "the wheel by pipx run and uvx"
python3 -m venv "$work/tools"
if "$work/tools/bin/pip" install --quiet --disable-pip-version-check pipx uv; then
  wheel="$(echo "$packages"/dsc_data-*manylinux*.whl)"
  [ "$(HOME="$work/home" "$work/tools/bin/pipx" run --spec "$wheel" dsc --version 2>/dev/null)" = "$version" ]
  [ "$(HOME="$work/home" "$work/tools/bin/uvx" --quiet --from "$wheel" dsc --version)" = "$version" ]
else
  say "not tried: pipx and uv could not be installed"
fi

say "the npm tarball without network"
npm install --silent --offline --cache "$work/no-cache" --prefix "$work/npm" "$packages/dsc-$version.tgz"
[ "$("$work/npm/node_modules/.bin/dsc" --version)" = "$version" ]
refused 'npm install --global' "$work/npm/node_modules/.bin/dsc"

if [[ " $* " = *" --arm64 "* ]]; then
  say "all of it for arm64"
  node scripts/package/package.mjs executable wheel linux --target linux-arm64 --output "$work/arm64"
  machine() { od -An -tx1 -j18 -N2 "$1" | tr -d ' \n'; } # e_machine of ELF: b7 00 is AArch64
  [ "$(machine "$work/arm64/dsc-linux-arm64")" = b700 ]
  [ "$(machine "$work/arm64/.work/linux-arm64/program/node_modules/better-sqlite3/prebuilds/linux-arm64.node")" = b700 ]
  [ "$(dpkg-deb --field "$work/arm64"/dsc_*_arm64.deb Architecture)" = arm64 ]
  runs_with_glibc "$work/arm64/dsc-linux-arm64" \
    "$work/arm64/.work/linux-arm64/program/node_modules/better-sqlite3/prebuilds/linux-arm64.node"
  ls "$work/arm64"/dsc-*.aarch64.rpm "$work/arm64"/dsc_data-*_aarch64.whl >/dev/null
  [ "$(ls "$work/arm64/.work/linux-arm64/program/node_modules/better-sqlite3/prebuilds")" = linux-arm64.node ]
fi

if [[ " $* " = *" --e2e "* ]]; then
  say "the end-to-end tests against the executable"
  DSC_BIN="$program" npm run --silent test:e2e
fi
say "all packages work"
