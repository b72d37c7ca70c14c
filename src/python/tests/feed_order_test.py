import hashlib
import json
import struct

import pytest
from feed_support import ROOT

import dsc
from dsc.feed.options import refuse_order_of_one_machine
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


def test_a_loader_imports_no_more_of_torch_than_it_uses():
    import subprocess
    import sys

    code = "import sys, torch; own = {*sys.modules}; import dsc; dsc.FeedLoader; print(*{*sys.modules} - own)"
    run = subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT / "src" / "python", capture_output=True)
    assert [name for name in run.stdout.decode().split() if name.startswith(("torch.", "sympy"))] == []


def test_an_order_that_one_machine_has_chosen_is_refused_where_others_train(monkeypatch):
    chosen, two = {"order": "groups-16"}, {"world": 2}
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    with pytest.raises(dsc.FeedError, match="order='groups-16' on all machines"):
        refuse_order_of_one_machine(two, chosen)
    refuse_order_of_one_machine({**two, "order": "groups-16"}, chosen)
    refuse_order_of_one_machine(two, {"order": "shuffle"})
    refuse_order_of_one_machine({"world": 1}, chosen)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    refuse_order_of_one_machine(two, chosen)
