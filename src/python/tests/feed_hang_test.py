"""Whatever a trainer does, its feed ends the wait: with data, or with an error that has a name."""

import contextlib
import itertools
import os
import signal

import pytest
import torch
from feed_support import COUNT, in_a_fork, wait_until

import dsc
from dsc.feed.order import epoch_order

BATCH = 8
STEPS = COUNT // BATCH


def expected(epoch, count=STEPS * BATCH):
    return epoch_order(COUNT, 7, epoch)[:count]


def make_feed(dataset, **options):
    """Three batches in advance: with more, a trainer would have its whole epoch before anything can happen to it."""
    return dsc.FeedDataset(
        dataset, **{"batch_size": BATCH, "depth": 3, "seed": 7, "transform": lambda sample: sample.id, **options}
    )


def ids_of(batches):
    return torch.cat(list(batches)).tolist()


@contextlib.contextmanager
def within(seconds):
    """Fails, instead of hanging, when the block takes longer."""

    def give_up(*_):
        raise AssertionError(f"still waiting after {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def metrics_of(feed):
    client = feed.connect()
    try:
        lines = client.status().splitlines()
    finally:
        client.close()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


EVERY_KIND = pytest.mark.parametrize(
    "kind", [{}, {"ahead": 1}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}]
)


@EVERY_KIND
def test_leaving_a_pass_early_again_and_again_keeps_nobody_waiting(dataset, kind):
    loader = dsc.FeedLoader(make_feed(dataset), **kind)
    with within(120):
        for epoch in range(3):
            for batch in loader:
                assert batch.tolist() == expected(epoch)[:BATCH]
                break
        assert ids_of(loader) == expected(3)
        loader.close()


@EVERY_KIND
def test_iterating_again_in_the_middle_of_a_pass_ends_it_and_begins_the_next_epoch(dataset, kind):
    loader = dsc.FeedLoader(make_feed(dataset), **kind)
    with within(120):
        first = iter(loader)
        next(first)
        second = iter(loader)
        received = [next(second)]
        with pytest.raises(dsc.FeedError, match="this pass has ended"):
            next(first)
        assert ids_of([*received, *second]) == expected(1)


def test_a_fork_after_use_gets_a_connection_of_its_own_and_leaves_the_parents_alone(dataset):
    feed = make_feed(dataset)
    samples = dsc.MapDataset(feed, transform=lambda sample: sample.id)
    batches = iter(feed)
    received = [next(batches)]
    assert samples.__getitems__([1]) == [1]
    assert in_a_fork(lambda: (samples.__getitems__([3, 5]), samples._client.pid == os.getpid())) == "([3, 5], True)"
    assert in_a_fork(lambda: next(iter(feed))) == repr(expected(1)[:BATCH])  # a pass of its own
    with within(120):
        received += batches
    assert list(itertools.chain(*received)) == expected(0)
    assert samples.__getitems__([2]) == [2]


def test_a_rank_that_stops_reading_keeps_nobody_else_waiting(dataset):
    """Its batches stay where they are; the other rank reads epoch after epoch in the memory that is left."""
    stopped = dsc.FeedLoader(make_feed(dataset, rank=0, world=2, batch_size=4, memory="128KiB"))
    next(iter(stopped))
    other = dsc.FeedLoader(make_feed(dataset, rank=1, world=2, batch_size=4, memory="128KiB"))
    with within(120):
        for epoch in range(4):
            whole = expected(epoch)
            own = list(itertools.chain(*(whole[at + 4 : at + 8] for at in range(0, len(whole), 8))))
            assert ids_of(other) == own


def test_a_killed_worker_is_reported_and_what_it_held_is_free_again(dataset):
    feed = make_feed(dataset)
    loader = torch.utils.data.DataLoader(feed, batch_size=None, num_workers=2)
    with within(120):
        batches = iter(loader)
        next(batches)
        with pytest.raises(RuntimeError, match="DataLoader worker"):
            os.kill(batches._workers[0].pid, signal.SIGKILL)  # torch's handler of SIGCHLD may raise right behind it
            list(batches)
        del batches

        def left():
            metrics = metrics_of(feed)
            return metrics["dsc_feed_arena_leased_bytes"], metrics['dsc_feed_clients{rank="0"}']

        wait_until(lambda: left() == (0, 2))  # clients: the trainer's, and the one that asks
        assert ids_of(dsc.FeedLoader(make_feed(dataset))) == expected(0)


def test_a_feed_larger_than_its_memory_file_system_is_refused_by_size(dataset):
    with within(120), pytest.raises(dsc.FeedError, match=r"has \d+ bytes free, but the feed is to use"):
        next(iter(make_feed(dataset, memory="900TiB")))
