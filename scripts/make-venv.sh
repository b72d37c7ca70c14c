#!/usr/bin/env bash
# Makes (once) a virtual environment for tests with what `pip install` is given, and prints its folder.
# It lives outside the checkout, so that a clean checkout need not download PyTorch again.
#   make-venv.sh NAME|FOLDER VERSION PACKAGE...      VERSION: another number for another list of packages
#   BASE_VENV=FOLDER make-venv.sh ...                has the packages of another environment, too
set -euo pipefail
case "$1" in
  /*) venv="$1" ;;
  *) venv="${XDG_CACHE_HOME:-$HOME/.cache}/dsc-test/$1" ;;
esac
complete="$venv/.complete-$2"
shift 2
packages_of() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
if [ ! -e "$complete" ]; then
  mkdir -p "$(dirname "$venv")"
  exec 9>"$venv.lock"
  flock 9
  if [ ! -e "$complete" ]; then
    python3 -m venv "$venv" >&2
    if [ -n "${BASE_VENV:-}" ]; then packages_of "$BASE_VENV" >"$(packages_of "$venv")/base.pth"; fi
    "$venv/bin/pip" install --quiet --disable-pip-version-check "$@" >&2
    touch "$complete"
  fi
fi
printf '%s\n' "$venv"
