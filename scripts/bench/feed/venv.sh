#!/usr/bin/env bash
# Makes (once) an environment with the loaders that `npm run bench -- feed` and `formats` compare, and prints its
# folder: that of python-venv.sh, whose PyTorch it shares, with the loaders on top.
set -euo pipefail
here="$(dirname "$0")/../.."
base="$("$here/python-venv.sh")"
BASE_VENV="$base" exec "$here/make-venv.sh" "${DSC_FEED_BENCH_VENV:-$base-feed-bench}" 2 \
  webdataset torchdata litdata mosaicml-streaming pillow pyarrow datasets lancedb pylance polars msgpack
