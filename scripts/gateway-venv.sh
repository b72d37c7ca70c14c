#!/usr/bin/env bash
# Makes (once) the virtual environment with the S3 clients that test:gateway runs, and prints its folder.
exec "$(dirname "$0")/make-venv.sh" "${DSC_TEST_GATEWAY_VENV:-gateway-venv}" 1 boto3 awscli pyarrow duckdb s5cmd
