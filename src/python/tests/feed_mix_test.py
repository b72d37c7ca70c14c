"""Several datasets in one feed, each visited as often as it should be."""

import itertools
import json
import subprocess

import pytest
import torch
from feed_support import COUNT, length_of, sample_bytes

import dsc
from dsc.feed.launch import dsc_command
from dsc.feed.order import mixed_order

BATCH = 8
FEW = 40


@pytest.fixture
def mix(dataset, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    for id in range(FEW):
        (few / f"{id:06}.bin").write_bytes(sample_bytes(7 * id, 300))
    return {str(dataset): 0.5, str(few): 2.25}


def expected(epoch):
    return mixed_order([(FEW, 2.25), (COUNT, 0.5)], 7, epoch)


def as_id(sample):
    folder, name = sample.name.split("/")
    inner = int(name.split(".")[0])
    assert (folder, inner) == (("few", sample.id) if sample.id < FEW else ("samples", sample.id - FEW))
    bytes_of = sample_bytes(inner, length_of(inner)) if folder == "samples" else sample_bytes(7 * inner, 300)
    assert bytes(sample.data) == bytes_of
    return sample.id


def make_loader(mix, num_workers=0, **options):
    options = {"batch_size": BATCH, "seed": 7, "transform": as_id, **options}
    return dsc.FeedLoader(dsc.FeedDataset(mix=mix, **options), num_workers=num_workers)


@pytest.mark.parametrize("num_workers,memory", [(0, "1MiB"), (2, "128KiB")])
def test_epochs_of_a_mix_come_in_their_order_with_every_byte_right(mix, num_workers, memory):
    loader = make_loader(mix, num_workers, memory=memory)
    for epoch in range(4):
        order = expected(epoch)
        steps = len(order) // BATCH
        assert len(loader) == steps
        assert torch.cat(list(loader)).tolist() == order[: steps * BATCH]


def test_a_mix_of_what_storage_nodes_serve_is_the_same(mix):
    command = [*dsc_command(), "feed", "storage", *mix, "--listen", "127.0.0.1:0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as node:
        try:
            text = ""
            while not text.rstrip().endswith("}"):
                text += node.stdout.readline()
            address = f"127.0.0.1:{json.loads(text)['port']}"
            loader = make_loader({"samples": 0.5, "few": 2.25}, feed_options=("--from", address))
            for epoch in range(2):
                order = expected(epoch)
                assert torch.cat(list(loader)).tolist() == order[: len(order) // BATCH * BATCH]
        finally:
            node.kill()


def test_a_mix_is_padded_from_the_start_of_its_own_epoch(mix):
    order = expected(0)
    padding = -len(order) % BATCH
    feed = dsc.FeedDataset(mix=mix, batch_size=BATCH, seed=7, last="pad")
    samples = [(sample.id, sample.is_padded) for batch in feed for sample in batch]
    assert samples == [(id, False) for id in order] + [(id, True) for id in order[:padding]]


def test_a_mix_resumes_on_other_ranks_and_another_mix_is_refused(mix, dataset):
    one = make_loader(mix)
    received = torch.cat(list(itertools.islice(one, 5))).tolist()
    state = one.state_dict()
    assert state["mix"] == {"samples": 0.5, "few": 2.25}
    one.close()
    two = [make_loader(mix, rank=rank, world=2, batch_size=BATCH // 2) for rank in range(2)]
    for loader in two:
        loader.load_state_dict(state)
    rest = [torch.cat(pair).tolist() for pair in zip(*two, strict=True)]
    order = expected(0)
    assert received + list(itertools.chain(*rest)) == order[: len(order) // BATCH * BATCH]
    other = make_loader({**mix, str(dataset): 1})
    with pytest.raises(dsc.FeedError, match="mix"):
        other.load_state_dict(state)
