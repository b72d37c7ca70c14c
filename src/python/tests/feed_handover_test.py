"""What workers hand to the trainer: the same values as by torch's own way, in memory that is used again."""

import gc
import itertools
import os
from collections import namedtuple

import pytest
import torch
from feed_support import in_a_fork, length_of, sample_bytes
from feed_trainers_test import BATCH, STEPS, expected, make_feed

import dsc

Pair = namedtuple("Pair", "images labels")
PIXELS = 30_000


def image_of(id):
    return torch.arange(id, id + PIXELS, dtype=torch.int32)


def collate(batch):
    assert all(bytes(sample.data) == sample_bytes(sample.id, length_of(sample.id)) for sample in batch)
    return Pair(torch.stack([image_of(sample.id) for sample in batch]), torch.tensor([sample.id for sample in batch]))


def collate_labels(batch):
    return torch.tensor([sample.id for sample in batch])


def make_loader(dataset, **options):
    feed = make_feed(dataset, transform=None)
    return dsc.FeedLoader(feed, **{"num_workers": 2, "collate_fn": collate, **options})


def check(pair):
    ids = pair.labels.tolist()
    assert torch.equal(pair.images, torch.stack([image_of(id) for id in ids]))
    return ids


@pytest.mark.parametrize("start", ["fork", "forkserver"])
def test_memory_is_used_again_once_the_trainer_has_let_go(dataset, start):
    loader = make_loader(dataset, multiprocessing_context=start, persistent_workers=True)
    ids, places = [], set()
    for pair in loader:
        ids += check(pair)
        places.add(pair.images.data_ptr())
    assert ids == expected(0)
    most = 2 * (2 + 2) + 2  # rooms of two workers, and a batch of each before its size is known
    assert len(places) <= most < STEPS
    del pair
    again = {pair.images.data_ptr() for pair in loader}
    assert len(again & places) >= 2, "the memory of persistent workers stays: at least the first room of each"
    assert len(again | places) <= most


def test_what_the_trainer_keeps_is_never_overwritten(dataset):
    loader = make_loader(dataset)
    kept = list(loader)
    assert list(itertools.chain(*map(check, kept))) == expected(0)
    labels = [pair.labels for pair in kept]  # a part of each batch
    del kept
    gc.collect()
    for pair in loader:
        check(pair)
    assert torch.cat(labels).tolist() == expected(0)


def test_what_the_trainer_keeps_costs_no_descriptors(dataset):
    """torch's own way takes one for each tensor: 256 kept labels were too many for a limit of 256."""
    loader = make_loader(dataset, persistent_workers=True)
    labels = [pair.labels.clone() for pair in loader]
    before = len(os.listdir("/proc/self/fd"))
    kept = list(make_loader(dataset, collate_fn=collate_labels))
    assert len(kept) == len(labels)
    assert torch.equal(torch.cat(kept), torch.cat(labels))
    assert len(os.listdir("/proc/self/fd")) < before + STEPS / 2


def test_batches_outlive_their_workers(dataset):
    loader = make_loader(dataset)
    batches = iter(loader)
    kept = [next(batches) for _ in range(5)]
    del batches
    loader.close()
    assert list(itertools.chain(*map(check, kept))) == expected(0)[: 5 * BATCH]


def test_a_forked_copy_of_the_trainer_gives_nothing_back(dataset):
    loader = make_loader(dataset)
    batches = iter(loader)
    held = [next(batches) for _ in range(6)]

    def drop():
        held.clear()
        gc.collect()

    in_a_fork(drop)
    for pair in batches:
        check(pair)
    assert list(itertools.chain(*map(check, held))) == expected(0)[: 6 * BATCH]


TENSORS = {
    "bool": torch.tensor([True, False]),
    "half": torch.arange(5.0).half(),
    "bfloat16": torch.arange(5.0).bfloat16(),
    "complex": torch.tensor([1 + 2j]),
    "number": torch.tensor(3.5),
    "empty": torch.empty(0, 3),
    "transposed": torch.arange(6).view(2, 3).t(),
    "channels last": torch.arange(48.0).view(1, 3, 4, 4).contiguous(memory_format=torch.channels_last),
    "part": torch.arange(10)[2:5],
    "sparse": torch.eye(3).to_sparse(),
    "parameter": torch.nn.Parameter(torch.ones(2)),
}


def collate_all(batch):
    whole = torch.arange(8)
    shared = torch.arange(4)
    return {
        "ids": [sample.id for sample in batch],
        "parts": (whole[:5], whole[3:]),
        "twice": [shared, shared],
        **TENSORS,
    }


def test_tensors_of_any_kind_arrive_as_they_are(dataset):
    for batch in itertools.islice(make_loader(dataset, collate_fn=collate_all), 8):
        for name, tensor in TENSORS.items():
            found = batch[name]
            assert (found.dtype, found.shape, found.layout) == (tensor.dtype, tensor.shape, tensor.layout), name
            assert type(found) is type(tensor) and found.requires_grad == tensor.requires_grad, name
            if tensor.layout == torch.strided:
                assert found.stride() == tensor.stride(), name
            assert torch.equal(found.to_dense(), tensor.to_dense()), name
        first, second = batch["parts"]
        first.zero_()
        assert second.tolist() == [0, 0, 5, 6, 7], "what two parts share they share afterwards"
        batch["twice"][0].zero_()
        assert batch["twice"][1].tolist() == [0] * 4


def collate_growing(batch):
    return torch.full((batch.step + 1, 5000), batch.step)


def test_batches_that_grow_get_larger_memory(dataset):
    for step, batch in enumerate(make_loader(dataset, collate_fn=collate_growing)):
        assert batch.shape == (step + 1, 5000) and (batch == step).all()


def test_memory_of_workers_is_gone_with_them(dataset):
    loader = make_loader(dataset)
    for pair in loader:
        check(pair)
    del pair
    loader.close()
    gc.collect()
    with open(f"/proc/{os.getpid()}/maps") as maps:
        assert "dsc-batch" not in maps.read()
