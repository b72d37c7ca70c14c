#!/usr/bin/env bash
# Makes (once) the virtual environment that the Python tests and benchmarks use, and prints its folder.
exec "$(dirname "$0")/make-venv.sh" "${DSC_TEST_VENV:-venv}" 3 \
  torch numpy pytest ruff mypy webdataset torchdata accelerate
