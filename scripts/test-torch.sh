#!/usr/bin/env bash
# Checks the Python client, the recipes and the scripts (lint, format, types) and runs their tests.
set -euo pipefail
cd "$(dirname "$0")/../src/python"
bin="$(../../scripts/python-venv.sh)/bin"
"$bin/ruff" check --quiet .
"$bin/ruff" check --quiet --config pyproject.toml --extend-ignore ANN ../../docs/recipes
"$bin/ruff" check --quiet --config pyproject.toml --extend-ignore ANN,D,E501 ../../scripts
"$bin/ruff" format --quiet --check --config pyproject.toml . ../../docs/recipes
"$bin/mypy" --no-error-summary
export PYTHONPATH=.
# Given a folder, a run after one that failed repeats only what failed there, unless pytest itself broke off.
again=()
[ -z "${DSC_TEST_RERUN:-}" ] || again=(-o "cache_dir=$DSC_TEST_RERUN/pytest" --last-failed)
"$(../../scripts/trainers-venv.sh)/bin/python" -m pytest -q -rs "${again[@]+"${again[@]}"}" "$@" || {
  status=$?
  [ "$status" = 1 ] || rm -rf "${DSC_TEST_RERUN:+$DSC_TEST_RERUN/pytest}"
  exit "$status"
}
if [ $# -eq 0 ]; then # with the libraries that write the formats
  "$(../../scripts/parquet-venv.sh)/bin/python" -m pytest -q -rs tests/feed_parquet_test.py tests/feed_splits_test.py
  "$(../../scripts/formats-venv.sh)/bin/python" -m pytest -q -rs tests/feed_formats_test.py
fi
