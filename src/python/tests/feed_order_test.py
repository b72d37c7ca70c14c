import hashlib
import json
import struct

from feed_support import ROOT

from dsc.feed.order import epoch_order, mixed_order


def test_the_order_equals_the_vectors_shared_with_typescript():
    vectors = json.loads((ROOT / "fixtures" / "feed" / "order-vectors.json").read_text())["vectors"]
    assert len(vectors) == 20
    for vector in vectors:
        order = epoch_order(vector["sampleCount"], vector["seed"], vector["epoch"], vector["kind"])
        assert order[:8] == vector["head"]
        packed = struct.pack(f"<{len(order)}I", *order)
        assert hashlib.sha256(packed).hexdigest() == vector["sha256"], vector


def test_the_order_of_a_mix_equals_the_vectors_shared_with_typescript():
    vectors = json.loads((ROOT / "fixtures" / "feed" / "mix-vectors.json").read_text())["vectors"]
    assert len(vectors) == 6
    for vector in vectors:
        parts = [(part["sampleCount"], part["times"]) for part in vector["parts"]]
        order = mixed_order(parts, vector["seed"], vector["epoch"])
        assert order[:8] == vector["head"]
        packed = struct.pack(f"<{len(order)}I", *order)
        assert hashlib.sha256(packed).hexdigest() == vector["sha256"], vector


def test_importing_dsc_needs_no_torch():
    import subprocess
    import sys

    code = "import sys; sys.modules['torch'] = None; import dsc; dsc.FeedError; dsc.FeedDataset; assert dsc.__version__"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT / "src" / "python")
