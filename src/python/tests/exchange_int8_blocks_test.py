"""The blocks of block-wise int8, beside exact means."""

import json
from base64 import b64decode
from pathlib import Path

import pytest
import torch

from dsc.exchange import int8_carrier
from dsc.exchange.int8_blocks import _random_rows, decode_blocks, encode_blocks, mean_blocks
from dsc.exchange.int8_carrier import Int8Exchange

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("size", [1e-34, 1e-20, 1.0, 1e30, 3.4e38])
def test_a_value_is_off_by_less_than_a_127th_of_the_largest_of_its_block(size):
    blocks = torch.randn(1500, 256, generator=torch.Generator().manual_seed(3))
    blocks = blocks / blocks.abs().amax(1, keepdim=True) * size
    found = decode_blocks(encode_blocks(blocks))
    errors = (found.double() - blocks.double()).abs().amax(1)
    assert (errors < size * 1.0001 / 127).all() and errors.max() > 0.9 * size / 127


@pytest.mark.parametrize(("piece_blocks", "lone_blocks"), [(1, 1), (3, 2), (3, 99), (4096, 1), (4096, 64)])
def test_the_means_are_those_of_the_vectors_to_which_the_node_engine_is_held_as_well(
    piece_blocks, lone_blocks, monkeypatch
):
    monkeypatch.setattr(int8_carrier, "PIECE_BLOCKS", piece_blocks)
    monkeypatch.setattr(int8_carrier, "LONE_BLOCKS", lone_blocks)
    floats = lambda text: torch.frombuffer(bytearray(b64decode(text)), dtype=torch.float32)  # noqa: E731
    for case in json.loads((ROOT / "fixtures/exchange/int8-vectors.json").read_text())["cases"]:
        ranks = len(case["gradients"])
        buckets = [torch.cat([floats(text) for text in rank]) for rank in case["gradients"]]
        exchanges = [Int8Exchange(bucket, case["sizes"], ranks) for bucket in buckets]
        sent = [exchange.encode().view(ranks, -1, 260) for exchange in exchanges]
        shares = [exchange.sum(torch.stack([one[rank] for one in sent])) for rank, exchange in enumerate(exchanges)]
        exchanges[-1].accept(torch.cat(shares))
        assert torch.equal(buckets[-1], torch.cat([floats(text) for text in case["means"]]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_of_whole_blocks_travel_as_those_that_are_copied_first(dtype, monkeypatch):
    sizes = [1024, 256 * 70, 10, 0, 256 * 200 + 3, 256, 256 * 5, 7]
    values = torch.randn(sum(sizes), generator=torch.Generator().manual_seed(4)).to(dtype)
    found = []
    for lone_blocks in (64, 10**9):
        monkeypatch.setattr(int8_carrier, "LONE_BLOCKS", lone_blocks)
        own = values.clone()
        exchange = Int8Exchange(own, sizes, 1)
        wire = exchange.encode()
        exchange.accept(wire)
        found.append((wire, own))
    assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])
    assert not torch.equal(found[0][1], values) and (found[0][1] - values).abs().max() < 6 / 127
    assert len(found[0][0]) == sum(-(-size // 256) for size in sizes)


@pytest.fixture
def own_default_dtype():
    """Lets a test set the default, as scripts do that train in another precision throughout."""
    yield
    torch.set_default_dtype(torch.float32)
    _random_rows.cache_clear()


@pytest.mark.parametrize("default", [torch.bfloat16, torch.float64])
def test_the_default_dtype_changes_neither_bytes_nor_means(default, own_default_dtype):
    blocks = torch.randn(8, 1000, 256, generator=torch.Generator().manual_seed(3))
    wires = torch.stack([encode_blocks(rank) for rank in blocks])
    mean = mean_blocks(wires)
    _random_rows.cache_clear()
    torch.set_default_dtype(default)
    assert torch.equal(torch.stack([encode_blocks(rank) for rank in blocks]), wires)
    assert mean_blocks(wires).dtype == torch.float32 and torch.equal(mean_blocks(wires), mean)


def test_zeros_stay_and_what_is_smaller_than_a_scale_can_be_counts_as_zero():
    blocks = torch.zeros(2, 256)
    blocks[1] = 1e-37
    assert torch.equal(decode_blocks(encode_blocks(blocks)), torch.zeros(2, 256))


def test_rounding_moves_no_value_on_average_and_the_same_values_are_the_same_bytes():
    draws = 4000
    blocks = torch.linspace(-1, 1, 256).repeat(draws, 1)
    blocks[:, 0] -= torch.rand(draws, generator=torch.Generator().manual_seed(1))  # the largest of each, its own
    wire = encode_blocks(blocks)
    assert torch.equal(wire, encode_blocks(blocks.clone()))
    moved = (decode_blocks(wire) - blocks)[:, 1:].double().mean(0)
    assert moved.abs().max() < 5 * 2 / 127 / 2 / draws**0.5  # five standard deviations
    assert moved.abs().mean() > 0


@pytest.mark.parametrize("bad", [float("inf"), float("-inf"), float("nan")])
def test_a_block_that_is_not_finite_is_nan_and_spoils_no_other(bad):
    blocks = torch.ones(3, 256)
    blocks[1, 77] = bad
    found = decode_blocks(encode_blocks(blocks))
    assert found[1].isnan().all() and torch.equal(found[[0, 2]], blocks[[0, 2]])
