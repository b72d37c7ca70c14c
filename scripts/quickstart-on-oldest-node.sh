#!/usr/bin/env bash
# Runs the quickstart on the oldest Node that package.json promises, exactly that version, from npm's package `node`;
# then uses what --keep leaves as a newcomer would, and ends it.
set -euo pipefail
cd "$(dirname "$0")/.."
oldest="$(node -p 'require("./package.json").engines.node.replace(/^>=/, "")')"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
npm install --silent --no-audit --no-fund --prefix "$folder" "node@$oldest"
node="$folder/node_modules/node/bin/node"
[ "$("$node" --version)" = "v$oldest" ] || { echo "expected Node $oldest, found $("$node" --version)" >&2; exit 1; }
PATH="$folder/node_modules/node/bin:$PATH" "$node" scripts/quickstart.mjs --keep | tee "$folder/tour"
kept="$(sed -n 's|^ *\. \(.*\)/env\.sh .*|\1|p' "$folder/tour")"
trap 'if [ -e "$kept/stop.sh" ]; then sh "$kept/stop.sh"; fi; rm -rf "$folder"' EXIT
(. "$kept/env.sh" && dsc prepare labels --task player && dsc status)
sh "$kept/stop.sh"
[ ! -e "$kept" ] || { echo "expected stop.sh to remove $kept" >&2; exit 1; }
