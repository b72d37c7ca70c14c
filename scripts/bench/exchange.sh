#!/usr/bin/env bash
# npm run bench:exchange: dsc's exchange beside gloo, over links of several speeds, in one run.
# Options are passed on: --quick for a short run, --links loopback,1gbit,10gbit.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv="$(scripts/python-venv.sh)"
exec "$venv/bin/python" scripts/bench/exchange.py "$@"
