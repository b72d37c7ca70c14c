#!/usr/bin/env bash
# Makes (once) the virtual environment with the S3 clients that test:gateway runs, and prints its folder. It borrows
# torch and numpy from the test environment, which it leaves as it is.
set -euo pipefail
scripts="$(cd "$(dirname "$0")" && pwd)"
BASE_VENV="$("$scripts/python-venv.sh")" exec "$scripts/make-venv.sh" \
  "${DSC_TEST_GATEWAY_VENV:-venv-gateway}" 6 \
  boto3 awscli pyarrow duckdb s5cmd litdata mosaicml-streaming s3torchconnector
