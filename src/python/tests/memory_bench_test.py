"""The benchmark's table of training steps, on the accounting device: all of its logic but the calls of CUDA."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from memory_tools import ROOT, one_thread  # noqa: E402, F401

sys.path.insert(0, str(Path(ROOT) / "scripts/bench/memory"))
from on_device import CountedPlace, measure  # noqa: E402, I001
from networks import NETWORKS  # noqa: E402
from on_device_report import format_section, judge  # noqa: E402


@pytest.mark.parametrize("network", list(NETWORKS["cpu"]))
def test_every_way_to_train_has_the_same_gradients_and_the_peak_it_should_have(network):
    ways = measure(CountedPlace(), NETWORKS["cpu"][network], rounds=2, steps=2)
    plain, half = ways["plain"], ways["half"]
    assert len({norm for row in ways.values() for norm in row["norms"]}) == 1
    assert abs(plain["peakBytes"] / half["predicted"]["unplannedPeakBytes"] - 1) <= 0.01
    for way in ("half", "lean"):
        predicted = ways[way]["predicted"]["peakBytes"]
        assert abs(ways[way]["peakBytes"] / predicted - 1) <= 0.05, way
        assert ways[way]["counts"]["planMisses"] == 0 and ways[way]["moves"] > 0
    assert half["peakBytes"] < plain["peakBytes"]
    assert ways["saveOnCpu"]["peakBytes"] < plain["peakBytes"]
    assert ways["lean"]["peakBytes"] <= 1.05 * ways["saveOnCpu"]["peakBytes"]
    count, blocks = [int(word) for word in ways["checkpointing"]["way"].split() if word.isdigit()]
    assert ways["checkpointing"]["peakBytes"] <= half["peakBytes"] or count == blocks
    section = "\n".join(format_section("a test", {network: ways}))
    assert section.count("\n| ") == 2 + len(ways) + len(judge(ways))


def rows(**changes):
    plan = {"way": "plan", "peakBytes": 100, "stepMs": 10, "norms": [1.0], "predicted": {"peakBytes": 100}}
    base = {"plain": {**plan, "stepMs": 9.5}, "half": plan, "lean": plan}
    base |= {name: {**plan, "stepMs": 12} for name in ("checkpointing", "saveOnCpu")}
    return {name: {**row, **changes.get(name, {})} for name, row in base.items()}


def test_each_goal_is_missed_by_what_misses_it():
    assert [is_met for _, _, is_met in judge(rows())] == [True] * 4
    for changes, missed in (
        ({"half": {"peakBytes": 111, "stepMs": 10}, "checkpointing": {"peakBytes": 111}}, 0),
        ({"plain": {"stepMs": 9}}, 1),
        ({"checkpointing": {"stepMs": 11}}, 2),
        ({"checkpointing": {"peakBytes": 90}}, 2),
        ({"saveOnCpu": {"stepMs": 11}}, 3),
        ({"saveOnCpu": {"peakBytes": 90}}, 3),
    ):
        assert [at for at, (_, _, is_met) in enumerate(judge(rows(**changes))) if not is_met] == [missed], changes
