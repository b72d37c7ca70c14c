#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")/.."
venv="$(scripts/python-venv.sh)"
PYTHONPATH=src/python exec "$venv/bin/python" -m pytest -q -rs src/python/tests "$@"
