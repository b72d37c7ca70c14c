#!/usr/bin/env bash
# Makes (once) the virtual environment of the recipes and of the memory matrix, and prints its folder: that of
# python-venv.sh, whose PyTorch it shares, with trainers and libraries of models on top.
set -euo pipefail
here="$(dirname "$0")"
base="$("$here/python-venv.sh")"
BASE_VENV="$base" exec "$here/make-venv.sh" "$base-trainers" 1 lightning transformers timm torchvision diffusers
