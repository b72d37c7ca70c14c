#!/usr/bin/env bash
# Makes (once) a virtual environment with the S3 clients that test:gateway runs, and prints its folder. It borrows
# torch and numpy from the test environment, which it leaves as it is.
#   gateway-venv.sh          all clients but s3fs; DuckDB at the version whose httpfs there is as a package
#   gateway-venv.sh s3fs     s3fs, whose botocore is another one than the AWS CLI's
set -euo pipefail
scripts="$(cd "$(dirname "$0")" && pwd)"
if [ "${1:-}" = s3fs ]; then
  made=("${DSC_TEST_S3FS_VENV:-venv-s3fs}" 1 s3fs)
else
  made=("${DSC_TEST_GATEWAY_VENV:-venv-gateway}" 7
    boto3 awscli pyarrow duckdb-extension-httpfs s5cmd litdata mosaicml-streaming s3torchconnector)
fi
BASE_VENV="$("$scripts/python-venv.sh")" exec "$scripts/make-venv.sh" "${made[@]}"
