#!/usr/bin/env bash
# Makes (once) an environment with the Python clients that `npm run bench -- stage` compares, and prints
# `python=/path`. Without a package registry they are left out, with a line on stderr.
set -euo pipefail
if venv="$("$(dirname "$0")/../../make-venv.sh" venv-stage 2 boto3 obstore huggingface_hub)"; then
  echo "python=$venv/bin/python"
else
  echo 'stage/venv.sh: boto3, obstore and huggingface_hub could not be installed, left out' >&2
fi
