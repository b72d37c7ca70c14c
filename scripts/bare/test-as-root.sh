#!/usr/bin/env bash
# Runs those tests of `npm test` that do more, or other things, as root: mount disks, become other users, run PostgreSQL
# as nobody.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH="$PWD/node_modules/.bin:$PATH"
npm run build
grep -rlE 'needsRoot|whyNoSmallDisk|whyNoNamespaces|startPostgresServer|getuid' src --include='*.test.ts' \
  --exclude='cluster-*' --exclude-dir=operators --exclude-dir=web |
  sed 's|^src/\(.*\)ts$|dist/\1js|' |
  xargs node --test --test-timeout=600000 --test-concurrency=2 --test-reporter=spec
