#!/usr/bin/env bash
# Checks the Python client, the recipes and the scripts, then runs their tests.
set -euo pipefail
cd "$(dirname "$0")/../src/python"
../../scripts/check-python.sh
export PYTHONPATH=.
"$(../../scripts/trainers-venv.sh)/bin/python" -m pytest -q -rs "$@"
if [ $# -eq 0 ]; then # with the libraries that write the formats
  "$(../../scripts/parquet-venv.sh)/bin/python" -m pytest -q -rs tests/feed_parquet_test.py tests/feed_splits_test.py
  "$(../../scripts/formats-venv.sh)/bin/python" -m pytest -q -rs tests/feed_formats_test.py
fi
