#!/usr/bin/env bash
# Checks the Python client (lint, format, types) and runs its tests.
set -euo pipefail
cd "$(dirname "$0")/../src/python"
bin="$(../../scripts/python-venv.sh)/bin"
"$bin/ruff" check --quiet .
"$bin/ruff" format --quiet --check .
"$bin/mypy" --no-error-summary
PYTHONPATH=. exec "$bin/python" -m pytest -q -rs "$@"
