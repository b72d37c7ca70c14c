#!/usr/bin/env bash
# Makes (once) an environment with what writes and reads Parquet beside dsc, and prints its folder: that of the Python
# tests, with pyarrow, Hugging Face's datasets, and msgpack, which `Sample.row()` uses where it is installed.
set -euo pipefail
BASE_VENV="$("$(dirname "$0")/python-venv.sh")" exec "$(dirname "$0")/make-venv.sh" venv-parquet 1 \
  pyarrow datasets msgpack pillow
