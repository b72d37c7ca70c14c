#!/usr/bin/env bash
# Runs commands, one after the other, in a copy of this checkout where a newcomer would: on a Debian that has Node, npm
# and nothing else. Everything else is as awkward as a machine may be: the checkout lies in a folder of mode 0700 whose
# name has a space and an umlaut, HOME is read-only, LANG is C, there is no terminal, and memory is limited to 2 GiB.
#   scripts/bare/run.sh root|user own|oldest 'npm ci' 'npm run quickstart' …
# own: Node and npm of this machine; oldest: Node 20.19 with its npm, the oldest that oxlint's native part allows (npm
# leaves it out of an older Node's installation without a word). Prints how many tests were skipped, by reason. Needs root, debootstrap and
# mount namespaces for all of that; else it takes away what it can: the programs of PATH. BARE_SKIPPED names a file that
# takes the words with which node --test repeats the skipped tests.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PATH:/usr/sbin:/sbin"
who="$1" node="$2"
shift 2
OLDEST=(node@20.19.0 npm@10.8.2)
MEMORY_BYTES=$((2 << 30))

cache="${XDG_CACHE_HOME:-$HOME/.cache}/dsc-test"
mkdir -p "$cache"
work="$(mktemp -d "$cache/bare-run-XXXXXX")"
memory=
child=
finish() {
  [ -z "$child" ] || kill -KILL -- "-$child" 2>/dev/null || true
  [ -z "$memory" ] || rmdir "$memory" || true
  rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 143' TERM INT # a wait ends with a signal, a program in the foreground would not

root= # nothing before a path: without a root of their own, the commands run in that of this machine
if [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null && unshare --mount true 2>/dev/null &&
  base="$(scripts/bare/make-root.sh)"; then
  cp -a --reflink=auto "$base" "$work/root"
  root="$work/root"
fi
programs="${root:-$work}/usr/local/bin"
mkdir -p "$programs"

if [ "$node" = oldest ]; then
  npm install --silent --no-audit --no-fund --prefix "$work/oldest" "${OLDEST[@]}"
  node_file="$work/oldest/node_modules/node/bin/node" npm_folder="$work/oldest/node_modules/npm"
else
  node_file="$(node -p process.execPath)" npm_folder="$(dirname "$(dirname "$(realpath "$(command -v npm)")")")"
fi
install -m 755 "$node_file" "$programs/node"
mkdir -p "${programs%/bin}/lib/node_modules"
cp -a "$npm_folder" "${programs%/bin}/lib/node_modules/npm"
for name in npm npx; do ln -s "../lib/node_modules/npm/bin/$name-cli.js" "$programs/$name"; done

# What npm needs to reach its registry from here: names, proxies and certificates.
network=()
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY NODE_EXTRA_CA_CERTS; do
  [ -z "${!name:-}" ] || network+=("$name=${!name}")
done
mkdir -p "${programs%/bin}/etc"
cat "$(npm config get globalconfig)" "$(npm config get userconfig)" 2>/dev/null |
  grep -E '^ *(//|@[^ :=]+:registry|registry|cafile|ca|proxy|https-proxy|noproxy|strict-ssl)' >"${programs%/bin}/etc/npmrc" || true
if [ -n "$root" ]; then
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  for file in "${NODE_EXTRA_CA_CERTS:-}" "$(npm config get cafile)"; do
    [ ! -f "$file" ] || install -D -m 644 "$file" "$root$file"
  done
fi

npm_cache=/tmp/npm-cache
case "$who" in
root) user=0 home=/root path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin ;;
user) user=1000 home=/home/ada path=/usr/local/bin:/usr/bin:/bin ;;
*) echo "expected root or user, found $who" >&2 && exit 2 ;;
esac
if [ -z "$root" ]; then
  echo "== no root of its own, which needs root, debootstrap and mount namespaces: PATH alone is bare"
  scripts/bare/link-programs.sh "$programs"
  path="$programs" home="$work/home" user="$(id -u)" npm_cache="$work/npm-cache"
  mkdir -m 555 "$home"
  chmod 755 "$work"
fi

place="${root:-$work}/srv/dsc für alle"
mkdir -p "$place/dsc"
chmod 700 "$place"
git ls-files -z --cached --others --exclude-standard |
  tar --null --files-from=- --ignore-failed-read -cf - | tar --no-same-owner -xf - -C "$place/dsc"
chown -R "$user:$user" "$place" 2>/dev/null || true

if [ -n "$root" ]; then
  for group in "/sys/fs/cgroup/memory/dsc-bare-$$ memory.limit_in_bytes" "/sys/fs/cgroup/dsc-bare-$$ memory.max"; do
    read -r folder limit <<<"$group" # version 1, version 2
    mkdir "$folder" 2>/dev/null || continue
    if echo "$MEMORY_BYTES" 2>/dev/null >"$folder/$limit"; then memory="$folder" && break; fi
    rmdir "$folder"
  done
  [ -n "$memory" ] || echo "== memory is not limited: no cgroup may be made here"
fi

# Runs in namespaces of its own, so that no mount and no process outlives it.
enter() {
  set -euo pipefail
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/run"
  mount --bind "$root$home" "$root$home"
  mount -o remount,bind,ro "$root$home"
  exec chroot --userspec="$user:$user" --groups= "$root" /usr/bin/env -i "$@"
}
export -f enter
export root home user
isolated() (
  [ -z "$memory" ] || echo "$BASHPID" >"$memory/cgroup.procs"
  [ -n "$root" ] || exec setsid env -i "$@"
  exec setsid unshare --mount --pid --fork --kill-child bash -c 'enter "$@"' bash "$@"
)

log="$work/log" status=0
mkfifo "$work/output"
for command in "$@"; do
  started=$SECONDS
  echo "== bare, $who, node $node: $command"
  # npm cannot work without a cache: who may not write to HOME names another folder.
  isolated PATH="$path" HOME="$home" LANG=C npm_config_cache="$npm_cache" \
    DSC_TEST_SKIPPED="${npm_cache%/*}/skipped" "${network[@]+"${network[@]}"}" \
    bash -c 'cd "$1" && eval "$2"' bash "${place#"$root"}/dsc" "$command" </dev/null >"$work/output" 2>&1 &
  child=$!
  tee -a "$log" <"$work/output" &
  wait "$child" || status=$?
  child=
  wait
  echo "== bare, $who: $command took $((SECONDS - started)) s"
  [ "$status" = 0 ] || break
done

skipped="$(sed -n '
  s/^ *﹣ .* # \(needs .*(Debian.*\)/\1/p; t
  s/^ *﹣ .* works as it is written.*/a block of the documents, which says why/p; t
  s/^ *﹣ .*# //p' "$log" | sort | uniq -c | sort -rn)"
[ -z "$skipped" ] || printf '== bare, %s: skipped tests by reason\n%s\n' "$who" "$skipped"
[ -z "${BARE_SKIPPED:-}" ] || cat "${root:-}${npm_cache%/*}"/skipped-* >"$BARE_SKIPPED" 2>/dev/null || true
exit "$status"
