"""What all tests have: dsc from this checkout, wherever another one is installed, and their fixtures."""

import os

# Two threads of OpenMP that wait for each other spin: beside one other busy process, a step of a small model took
# twenty times as long as with one thread.
os.environ["OMP_NUM_THREADS"] = "1"

from feed_support import ROOT, dataset  # noqa: F401

os.environ["DSC_BIN"] = f"{ROOT / 'node_modules' / '.bin' / 'node'} {ROOT / 'bin' / 'dsc.js'}"
