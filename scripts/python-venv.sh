#!/usr/bin/env bash
# Makes (once) the virtual environment that the Python tests and benchmarks use, and prints its folder.
# It lives outside the checkout, so that a clean checkout need not download PyTorch again.
set -euo pipefail
venv="${DSC_TEST_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/dsc-test/venv}"
if [ ! -e "$venv/.complete-1" ]; then
  mkdir -p "$(dirname "$venv")"
  exec 9>"$venv.lock"
  flock 9
  if [ ! -e "$venv/.complete-1" ]; then
    python3 -m venv "$venv" >&2
    "$venv/bin/pip" install --quiet --disable-pip-version-check torch numpy pytest >&2
    touch "$venv/.complete-1"
  fi
fi
printf '%s\n' "$venv"
