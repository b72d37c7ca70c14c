#!/usr/bin/env bash
# Makes (once) an environment with the loaders that `npm run bench -- cold` compares, and prints its folder.
# It borrows torch and numpy from the test environment, which it leaves as it is.
set -euo pipefail
scripts="$(cd "$(dirname "$0")/../.." && pwd)"
BASE_VENV="$("$scripts/python-venv.sh")" exec "$scripts/make-venv.sh" \
  "${DSC_COLD_BENCH_VENV:-venv-cold-bench}" 1 boto3 s3torchconnector litdata mosaicml-streaming
