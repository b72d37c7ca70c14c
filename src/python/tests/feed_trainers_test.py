"""A feed under the loaders that others wrote: what torch's DataLoader and its kin expect of any dataset."""

import copy
import itertools
import os
import pickle
import time

import pytest
import torch
from feed_support import COUNT, feeds, in_a_fork, length_of, sample_bytes, wait_until
from torch.utils.data import DataLoader

import dsc
from dsc.feed.order import epoch_order

BATCH = 8
STEPS = COUNT // BATCH


def expected(epoch):
    return epoch_order(COUNT, 7, epoch)[: STEPS * BATCH]


def id_of(sample):
    assert bytes(sample.data) == sample_bytes(sample.id, length_of(sample.id))
    return sample.id


def make_feed(dataset, **options):
    return dsc.FeedDataset(dataset, **{"batch_size": BATCH, "seed": 7, "transform": id_of, **options})


@pytest.mark.parametrize(
    "start,persistent", [("fork", False), ("fork", True), ("spawn", False), ("forkserver", False), ("forkserver", True)]
)
def test_a_plain_dataloader_has_one_feed_and_another_order_in_every_epoch(dataset, monkeypatch, start, persistent):
    monkeypatch.delenv("DSC_FEED_JOB")  # as outside of tests: the job is told by its process
    loader = DataLoader(
        make_feed(dataset),
        batch_size=None,
        num_workers=2,
        multiprocessing_context=start,
        persistent_workers=persistent,
    )
    for epoch in range(2):
        assert list(itertools.chain(*loader)) == expected(epoch)
        assert len(feeds(dataset)) == 1


def test_epochs_differ_although_the_script_seeds_torch_before_each(dataset):
    loader = DataLoader(make_feed(dataset), batch_size=None, num_workers=2)
    for epoch in range(2):
        torch.manual_seed(0)
        assert list(itertools.chain(*loader)) == expected(epoch)


def test_every_object_has_a_place_of_its_own(dataset):
    first, second = make_feed(dataset), make_feed(dataset)
    assert list(itertools.chain(*first)) == expected(0)
    for epoch in range(2):  # the second one is an epoch behind
        pairs = list(zip(first, second))
        assert [id for ours, _ in pairs for id in ours] == expected(epoch + 1)
        assert [id for _, theirs in pairs for id in theirs] == expected(epoch)
    assert list(itertools.chain(*make_feed(dataset))) == expected(0)
    assert len(feeds(dataset)) == 1


@pytest.mark.parametrize("make_copy", [copy.copy, copy.deepcopy, lambda feed: pickle.loads(pickle.dumps(feed))])
def test_a_copy_has_a_place_of_its_own_which_begins_where_its_original_was(dataset, make_copy):
    original = make_feed(dataset)
    assert list(itertools.chain(*original)) == expected(0)
    twin = make_copy(original)
    pairs = list(zip(original, twin))
    for side in range(2):
        assert [id for pair in pairs for id in pair[side]] == expected(1)
    assert list(itertools.chain(*twin)) == expected(2)
    assert list(itertools.chain(*original)) == expected(2)
    spawned = DataLoader(twin, batch_size=None, num_workers=2, multiprocessing_context="spawn")
    assert list(itertools.chain(*spawned)) == expected(3)
    assert list(itertools.chain(*twin)) == expected(4)
    assert len(feeds(dataset)) == 1


@pytest.mark.parametrize("num_workers", [0, 2])
def test_two_loaders_take_turns_far_apart(dataset, num_workers):
    training = dsc.FeedLoader(make_feed(dataset), num_workers=num_workers)
    for epoch in range(4):
        assert torch.cat(list(training)).tolist() == expected(epoch)
        evaluation = dsc.FeedLoader(make_feed(dataset), num_workers=num_workers)
        assert torch.cat(list(itertools.islice(evaluation, 3))).tolist() == expected(0)[: 3 * BATCH]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_feed_that_ended_between_passes_is_started_again(dataset, monkeypatch, num_workers):
    monkeypatch.setattr("dsc.feed.launch._IDLE_EXIT_SECONDS", 1)
    loader = DataLoader(make_feed(dataset), batch_size=None, num_workers=num_workers)
    assert list(itertools.chain(*loader)) == expected(0)
    stop_feeds(loader.dataset)
    assert list(itertools.chain(*loader)) == expected(1)


def test_whoever_holds_a_loader_holds_its_feed(dataset, monkeypatch):
    monkeypatch.setattr("dsc.feed.launch._IDLE_EXIT_SECONDS", 1)
    feed = make_feed(dataset)
    assert len(feed) == STEPS
    (pid,) = feeds(dataset)
    time.sleep(1.5)  # a model is built
    loader = dsc.FeedLoader(feed, num_workers=1)
    assert torch.cat(list(loader)).tolist() == expected(0)
    assert feeds(dataset) == [pid]
    loader.close()
    wait_until(lambda: feeds(dataset) == [])
    assert torch.cat(list(loader)).tolist() == expected(1)


def test_set_epoch_is_obeyed_after_as_many_batches_as_there_are_and_after_a_break(dataset):
    loader = dsc.FeedLoader(make_feed(dataset))
    for epoch in (0, 1, 5, 5):
        loader.set_epoch(epoch)
        assert torch.cat(list(itertools.islice(loader, STEPS))).tolist() == expected(epoch)
    for epoch in (2, 3):
        loader.set_epoch(epoch)
        assert next(iter(loader)).tolist() == expected(epoch)[:BATCH]
    feed = make_feed(dataset)
    for epoch in (3, 4, 0):
        feed.set_epoch(epoch)
        assert next(iter(feed)) == expected(epoch)[:BATCH]


def test_set_epoch_keeps_the_place_in_it_that_a_state_was_loaded_for(dataset):
    loader = dsc.FeedLoader(make_feed(dataset))
    loader.set_epoch(2)
    received = torch.cat(list(itertools.islice(loader, 3))).tolist()
    other = dsc.FeedLoader(make_feed(dataset))
    other.load_state_dict(loader.state_dict())
    other.set_epoch(2)
    assert received + torch.cat(list(other)).tolist() == expected(2)


def test_a_forked_child_that_reads_its_parents_pass_is_refused_and_the_parent_reads_on(dataset):
    for batches in (iter(make_feed(dataset)), iter(dsc.FeedLoader(make_feed(dataset)))):
        received = [*next(batches)]
        assert f"begun by process {os.getpid()}" in in_a_fork(lambda batches=batches: next(batches))
        received += itertools.chain(*batches)
        assert [int(id) for id in received] == expected(0)


@pytest.mark.parametrize(
    "error,options",
    [
        (TypeError, {"batch_size": "8"}),
        (TypeError, {"batch_size": True}),
        (ValueError, {"batch_size": 0}),
        (ValueError, {"seed": -1}),
        (TypeError, {"seed": 1.5}),
        (ValueError, {"order": "random"}),
        (ValueError, {"last": "keep"}),
        (ValueError, {"assign": "near"}),
        (ValueError, {"rank": 2, "world": 2}),
        (ValueError, {"replicate": 0}),
        (TypeError, {"transform": 7}),
        (ValueError, {"memory": "lots"}),
        (ValueError, {"k": 0}),
        (ValueError, {"depth": 0}),
        (ValueError, {"timeout": 0}),
        (TypeError, {"feed_options": "--verbose"}),
        (ValueError, {"mix": {"a": 1}}),
    ],
)
def test_bad_arguments_are_refused_by_name_before_anything_starts(dataset, error, options):
    with pytest.raises(error, match=next(iter(options)) if options.keys() != {"rank", "world"} else "rank"):
        make_feed(dataset, **options)
    assert feeds(dataset) == []


def test_a_mix_is_checked_too(dataset):
    for times in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="mix"):
            dsc.FeedDataset(mix={str(dataset): times}, batch_size=BATCH)
    with pytest.raises(TypeError, match="mix"):
        dsc.FeedDataset(mix={str(dataset): "1"}, batch_size=BATCH)
    with pytest.raises(TypeError):
        dsc.FeedDataset(7, batch_size=BATCH)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_single_samples_are_collated_by_a_dataloader_in_batches_of_its_own(dataset, num_workers):
    feed = make_feed(dataset, batch_size=None, transform=None)
    loader = DataLoader(feed, batch_size=10, num_workers=num_workers, collate_fn=list)
    assert len(feed) == COUNT and len(loader) == -(-COUNT // 10)
    for epoch in range(2):
        batches = list(loader)
        ids = [id_of(sample) for batch in batches for sample in batch]
        if num_workers == 0:
            assert ids == epoch_order(COUNT, 7, epoch)
        assert sorted(ids) == list(range(COUNT))


def test_single_samples_are_shared_among_ranks_in_the_feeds_order(dataset):
    ranks = [make_feed(dataset, batch_size=None, rank=rank, world=2) for rank in range(2)]
    pairs = list(zip(*ranks))
    assert list(itertools.chain(*pairs)) == epoch_order(COUNT, 7, 0)[: COUNT // 2 * 2]


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("batch_size", [BATCH, None])
@pytest.mark.parametrize("taken", [0, 5])
def test_a_stateful_dataloader_goes_on_with_the_next_batch(dataset, num_workers, batch_size, taken):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def make():
        own = None if batch_size else BATCH
        feed = make_feed(dataset, batch_size=batch_size)
        return stateful.StatefulDataLoader(feed, batch_size=own, num_workers=num_workers, collate_fn=torch.as_tensor)

    whole = make()
    epochs = [[batch.tolist() for batch in whole] for _ in range(2)]
    first = make()
    batches = iter(first)
    received = [next(batches).tolist() for _ in range(taken)]
    state = first.state_dict()
    del batches
    second = make()
    second.load_state_dict(state)
    assert received + [batch.tolist() for batch in second] == epochs[0]
    assert [batch.tolist() for batch in second] == epochs[1]


def stop_feeds(feed):
    """Ends the feed as its idle exit does."""
    feed.close()
    for pid in feeds(feed.serving.target):
        os.kill(pid, 15)
    wait_until(lambda: feeds(feed.serving.target) == [])
