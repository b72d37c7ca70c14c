#!/usr/bin/env bash
# Makes (once) the virtual environment of the Hugging Face clients that test:hf runs, and prints its folder: that of
# python-venv.sh, whose PyTorch it shares, with the clients on top.
set -euo pipefail
here="$(dirname "$0")"
base="$("$here/python-venv.sh")"
BASE_VENV="$base" exec "$here/make-venv.sh" "$base-hf" 1 huggingface_hub transformers datasets
