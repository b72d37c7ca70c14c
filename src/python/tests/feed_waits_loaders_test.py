"""`dsc report --job` against injected truth, of trainers that read without a FeedLoader."""

import itertools
import threading
import time

import pytest
import torch
from feed_waits_cluster import (  # noqa: F401
    BATCH,
    Truth,
    check_train,
    enter_job,
    make_cluster,
    slow_collate,
    slow_transform,
)

from dsc.feed import waits
from dsc.feed.client import WAITED
from dsc.feed.dataset import FeedDataset
from dsc.feed.map_style import FeedBatchSampler, MapDataset
from dsc.feed.parcels import Parcels

try:  # before the first dataset, as trainers do
    from torchdata.stateful_dataloader import StatefulDataLoader
except ImportError:
    StatefulDataLoader = None


def as_tensor(sample):
    return torch.ones(1)


def slowly_as_tensor(sample):
    time.sleep(0.008)
    return as_tensor(sample)


def as_plain_loader(dataset, **options):
    return torch.utils.data.DataLoader(dataset, **options)


def as_map_loader(dataset, **options):
    sampler = FeedBatchSampler(dataset)
    samples = MapDataset(dataset, transform=dataset.transform)
    return torch.utils.data.DataLoader(samples, batch_sampler=sampler, collate_fn=list, **options)


def as_torchdata_has_it(dataset, **options):
    if StatefulDataLoader is None:
        pytest.importorskip("torchdata.stateful_dataloader")
    return StatefulDataLoader(dataset, **options)


def as_accelerate_has_it(dataset, **options):
    accelerate = pytest.importorskip("accelerate")
    return accelerate.Accelerator(cpu=True).prepare(as_plain_loader(dataset, **options))


WAYS = {
    "alone": lambda dataset: dataset,
    "loader": lambda dataset: as_plain_loader(dataset, batch_size=None),
    "workers": lambda dataset: as_plain_loader(dataset, batch_size=None, num_workers=2),
    "map-style": as_map_loader,
    "map-style workers": lambda dataset: as_map_loader(dataset, num_workers=2, persistent_workers=True),
    "stateful": lambda dataset: as_torchdata_has_it(dataset, batch_size=None),
    "stateful workers": lambda dataset: as_torchdata_has_it(dataset, batch_size=None, num_workers=2),
    "accelerate": lambda dataset: as_accelerate_has_it(dataset, batch_size=None),
    "accelerate workers": lambda dataset: as_accelerate_has_it(dataset, batch_size=None, num_workers=1),
}


@pytest.mark.parametrize("way", WAYS)
def test_names_a_slow_transform_without_a_feed_loader(cluster, job, way):
    truth = Truth()
    dataset = truth.ready(cluster.staged(), transform=slowly_as_tensor)
    loader = WAYS[way](dataset)
    truth.train(lambda: loader, epochs=2)
    dataset.close()
    check_train(cluster, job, truth, "transform", "transform")


@pytest.mark.parametrize("way", ["alone", "workers", "map-style workers"])
def test_names_a_slow_store_without_a_feed_loader(cluster, job, way):
    truth = Truth()
    dataset = truth.ready_while_arriving(cluster, 0.1, start="arriving", transform=as_tensor)
    try:
        truth.train(lambda: WAYS[way](dataset))
    finally:
        cluster.store.delay = 0.0
        dataset.close()
    check_train(cluster, job, truth, "feed", "store")


@pytest.mark.parametrize("workers", [0, 2])
def test_names_a_slow_collate_of_single_samples(cluster, job, workers):
    truth = Truth()
    dataset = truth.ready(cluster.staged(), batch_size=None)
    options = {"batch_size": BATCH, "num_workers": workers, "collate_fn": slow_collate}
    truth.train(lambda: as_plain_loader(dataset, **options), epochs=2)
    dataset.close()
    check_train(cluster, job, truth, "transform", "transform")


def test_a_pass_that_nobody_ends_is_told_when_the_dataset_is_closed(cluster, job):
    truth = Truth()
    dataset = truth.ready(cluster.staged(), transform=slowly_as_tensor)
    loader = as_plain_loader(dataset, batch_size=None, num_workers=2)

    passes = []  # kept: ending workers would be waited for, too

    def count_batches():  # as Lightning does
        for _ in range(3):
            passes.append(iter(loader))
            yield from itertools.islice(passes[-1], len(loader))

    truth.train(count_batches)
    dataset.close()
    check_train(cluster, job, truth, "transform", "transform")


def test_counts_single_samples_once(cluster, job):
    truth = Truth()
    dataset = truth.ready(cluster.staged(), batch_size=None, transform=slow_transform)
    truth.train(lambda: dataset, compute=0.002)
    dataset.close()
    check_train(cluster, job, truth, "transform", "transform")


def test_time_after_the_last_pass_counts(cluster, job):
    dataset = Truth().ready(cluster.staged())
    began = time.monotonic()
    list(dataset)
    time.sleep(1)  # as one who saves a checkpoint, which is no wait
    dataset.close()
    took = time.monotonic() - began
    assert abs(cluster.report(job)["gpuMs"] - 1000 * took) < 100


def test_what_a_worker_waits_for_its_start_is_not_the_time_of_its_first_batch():
    class Started:
        skipped = ()
        is_packed_at_once = False

        def items(self):
            with waits.count_as_start():
                time.sleep(0.1)
            WAITED.seconds += time_fetching(0.02)
            yield []

    def time_fetching(seconds):
        time.sleep(seconds)
        return seconds

    (parcel,) = Parcels(Started())
    assert parcel.feed_share > 0.9


class Foreign(torch.utils.data.Dataset):
    timed = True

    def __len__(self):
        return 4

    def __getitem__(self, at):
        return at


def test_loaders_of_other_datasets_are_left_alone(cluster):
    FeedDataset(cluster.staged(), batch_size=BATCH)  # begins to time loaders
    assert [batch.tolist() for batch in as_plain_loader(Foreign(), batch_size=2)] == [[0, 1], [2, 3]]


def test_a_thread_that_reads_ahead_counts_nothing(cluster, job, monkeypatch):
    dataset = Truth().ready(cluster.staged(), transform=slow_transform)
    told = []
    monkeypatch.setattr(dataset, "tell_waits", lambda **how: told.append(how))  # telling starts from zero
    reader = threading.Thread(target=lambda: list(dataset))
    reader.start()
    reader.join()
    assert told == [] and vars(dataset.waits) == vars(waits.Waits())
    dataset.close()
