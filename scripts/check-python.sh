#!/usr/bin/env bash
# Checks the lint, the format and the types of the Python client, the recipes and the scripts. Changes nothing.
set -euo pipefail
cd "$(dirname "$0")/../src/python"
bin="$(../../scripts/python-venv.sh)/bin"
"$bin/ruff" check --quiet .
"$bin/ruff" check --quiet --config pyproject.toml --extend-ignore ANN ../../docs/recipes
"$bin/ruff" check --quiet --config pyproject.toml --extend-ignore ANN,D,E501 ../../scripts
"$bin/ruff" format --quiet --check --config pyproject.toml . ../../docs/recipes
"$bin/mypy" --no-error-summary
