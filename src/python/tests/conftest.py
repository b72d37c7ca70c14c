"""What all tests have: dsc from this checkout, wherever another one is installed, and their fixtures."""

import os

from feed_support import ROOT, dataset  # noqa: F401

os.environ["DSC_BIN"] = f"{ROOT / 'node_modules' / '.bin' / 'node'} {ROOT / 'bin' / 'dsc.js'}"
