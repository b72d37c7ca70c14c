#!/usr/bin/env bash
# Makes (once) an environment with the loaders that `npm run bench:feed` compares, and prints its folder.
# It borrows torch and numpy from the test environment, which it leaves as it is.
set -euo pipefail
base="$("$(dirname "$0")/../python-venv.sh")"
venv="${DSC_FEED_BENCH_VENV:-$base-feed-bench}"
if [ ! -e "$venv/.complete-2" ]; then
  python3 -m venv "$venv" >&2
  site="$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
  "$base/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > "$site/test-environment.pth"
  "$venv/bin/pip" install --quiet --disable-pip-version-check webdataset torchdata litdata mosaicml-streaming pillow \
    pyarrow datasets lancedb pylance polars msgpack >&2
  touch "$venv/.complete-2"
fi
printf '%s\n' "$venv"
