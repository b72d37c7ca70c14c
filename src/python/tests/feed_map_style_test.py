"""Map-style access: every pass is the next epoch, whatever became of the one before and whoever starts the workers."""

import itertools

import pytest
import torch
from feed_support import COUNT, feeds, kill_feeds
from feed_trainers_test import BATCH, STEPS, expected, id_of, make_feed, wait_until
from torch.utils.data import DataLoader

import dsc


def make_loader(dataset, **options):
    feed = make_feed(dataset, transform=None)
    return DataLoader(dsc.MapDataset(feed, transform=id_of), batch_sampler=dsc.FeedBatchSampler(feed), **options)


def ids_of(batches):
    return torch.cat(list(batches)).tolist()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_workers": 2, "multiprocessing_context": "fork"},
        {"num_workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True},
        {"num_workers": 1, "multiprocessing_context": "forkserver", "persistent_workers": True},
    ],
)
def test_each_pass_is_the_next_epoch_also_after_as_many_batches_as_there_are_and_after_a_break(dataset, options):
    loader = make_loader(dataset, **options)
    assert ids_of(loader) == expected(0)
    assert ids_of(itertools.islice(loader, STEPS)) == expected(1)
    assert ids_of(itertools.islice(loader, 3)) == expected(2)[: 3 * BATCH]
    assert ids_of(loader) == expected(3)
    assert len(feeds(dataset)) == 1


def test_two_passes_side_by_side_are_two_epochs(dataset):
    loader = make_loader(dataset)
    pairs = list(zip(loader, loader, strict=True))
    assert ids_of(first for first, _ in pairs) == expected(0)
    assert ids_of(second for _, second in pairs) == expected(1)
    assert ids_of(loader) == expected(2)


def test_set_epoch_is_obeyed_but_for_a_place_in_that_epoch_that_a_state_was_loaded_for(dataset):
    loader = make_loader(dataset)
    for epoch in (5, 2, 2):
        loader.batch_sampler.set_epoch(epoch)
        assert ids_of(itertools.islice(loader, 3)) == expected(epoch)[: 3 * BATCH]
    state = loader.batch_sampler.state_dict()
    other = make_loader(dataset)
    other.batch_sampler.load_state_dict(state)
    other.batch_sampler.set_epoch(2)
    assert ids_of(other) == expected(2)[3 * BATCH :]
    other.batch_sampler.load_state_dict(state)
    other.batch_sampler.set_epoch(4)
    assert ids_of(other) == expected(4)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_stateful_dataloader_goes_on_with_the_next_batch(dataset, num_workers):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def make():
        feed = make_feed(dataset, transform=None)
        samples, sampler = dsc.MapDataset(feed, transform=id_of), dsc.FeedBatchSampler(feed)
        return stateful.StatefulDataLoader(samples, batch_sampler=sampler, num_workers=num_workers)

    for taken in (0, 5):
        first = make()
        batches = iter(first)
        received = [next(batches) for _ in range(taken)]
        state = first.state_dict()
        del batches
        second = make()
        second.load_state_dict(state)
        assert ids_of([*received, *second]) == expected(0)
        assert ids_of(second) == expected(1)


def test_a_feed_that_ended_between_passes_is_started_again(dataset):
    loader = make_loader(dataset)
    assert ids_of(loader) == expected(0)
    assert kill_feeds(dataset)
    wait_until(lambda: not loader.dataset._client.is_alive())
    assert ids_of(loader) == expected(1)
    assert kill_feeds(dataset)
    wait_until(lambda: not loader.dataset._client.is_alive())
    assert loader.dataset[COUNT - 1] == COUNT - 1


def test_a_loop_over_the_dataset_ends_with_its_last_sample(dataset):
    samples = dsc.MapDataset(make_feed(dataset, transform=None), transform=id_of)
    assert list(samples) == list(range(COUNT))
    for id in (-1, COUNT, 2**32):
        with pytest.raises(IndexError, match=f"sample {id} is not one of the {COUNT}"):
            samples[id]


def test_an_epoch_that_no_batch_can_name_is_refused_by_name(dataset):
    feed = make_feed(dataset)
    feed.set_epoch(2**32)
    with pytest.raises(dsc.FeedError, match="epoch must be below 4294967296, not 4294967296") as caught:
        next(iter(feed))
    assert caught.value.code == "FEED_PROTOCOL"


@pytest.mark.parametrize(
    "change",
    [{"seed": 1}, {"order": "sequential"}, {"last": "uneven"}, {"batch_size": 2 * BATCH}],
    ids=lambda change: next(iter(change)),
)
def test_a_state_of_another_sequence_is_refused_by_what_differs(dataset, change):
    state = dsc.FeedBatchSampler(make_feed(dataset, transform=None)).state_dict()
    other = dsc.FeedBatchSampler(make_feed(dataset, **{"transform": None, **change}))
    name = {"batch_size": "B"}.get(next(iter(change)), next(iter(change)))
    with pytest.raises(dsc.FeedError, match=f"the state has {name} ") as refused:
        other.load_state_dict(state)
    assert refused.value.code == "FEED_STATE_MISMATCH"


def test_a_state_of_another_seed_is_taken_where_that_is_meant_and_one_without_a_seed_as_ever(dataset):
    state = dsc.FeedBatchSampler(make_feed(dataset, transform=None)).state_dict()
    other = dsc.FeedBatchSampler(make_feed(dataset, transform=None, seed=1))
    other.load_state_dict({**state, "step": 3}, override=True)
    assert other.state_dict()["step"] == 3
    old = {name: state[name] for name in ("v", "epoch", "B", "fingerprint", "listing")}
    other.load_state_dict({**old, "step": 4})
    assert other.state_dict()["step"] == 4
