#!/usr/bin/env bash
# Makes (once) an environment with the libraries that write MDS and LitData, beside the PyTorch of python-venv.sh, and
# prints its folder.
set -euo pipefail
here="$(dirname "$0")"
base="$("$here/python-venv.sh")"
BASE_VENV="$base" exec "$here/make-venv.sh" "$base-formats" 1 litdata mosaicml-streaming
