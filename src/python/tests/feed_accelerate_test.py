"""A feed under Hugging Face Accelerate: every sample exactly once, or a refusal by name."""

import itertools
import os

import pytest
import torch
from exchange_workers import run_ranks
from feed_support import COUNT
from torch.utils.data import DataLoader

import dsc
from dsc.feed.order import epoch_order

pytest.importorskip("accelerate")
BATCH = 4
STEPS = COUNT // (2 * BATCH)


def id_of(sample):
    return torch.tensor(sample.id)


def read_all(rank, environment, folder, way, options, readers=(0, 1)):
    """The ids that one of two ranks gets from a loader that Accelerate has prepared."""
    os.environ.update(environment, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="1")  # asked for, not used: the group is there
    from accelerate import Accelerator, DataLoaderConfiguration

    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**options))
    assert accelerator.num_processes == 2
    try:
        loader = accelerator.prepare(WAYS[way](folder))
        if rank not in readers:
            return None
        return [[int(id) for batch in loader for id in batch] for _ in range(2)]
    except dsc.FeedError as error:
        return str(error)


def make_feed(folder, **options):
    return dsc.FeedDataset(folder, **{"batch_size": BATCH, "seed": 7, "transform": id_of, **options})


def map_style(folder):
    feed = make_feed(folder)
    return DataLoader(dsc.MapDataset(feed, transform=id_of), batch_sampler=dsc.FeedBatchSampler(feed))


WAYS = {
    "FeedLoader": lambda folder: dsc.FeedLoader(make_feed(folder)),
    "DataLoader": lambda folder: DataLoader(make_feed(folder), batch_size=None),
    "DataLoader with workers": lambda folder: DataLoader(make_feed(folder), batch_size=None, num_workers=1),
    "single samples": lambda folder: DataLoader(make_feed(folder, batch_size=None), batch_size=BATCH),
    "MapDataset": map_style,
    "rank=0, world=1": lambda folder: DataLoader(
        make_feed(folder, batch_size=None, rank=0, world=1), batch_size=BATCH, drop_last=True
    ),
}


def test_a_feed_loader_is_left_as_it_is(dataset):
    for epoch, ranks in enumerate(zip(*run_ranks(2, read_all, dict(os.environ), str(dataset), "FeedLoader", {}))):
        assert sorted(itertools.chain(*ranks)) == sorted(epoch_order(COUNT, 7, epoch)[: STEPS * 2 * BATCH])


@pytest.mark.parametrize("options", [{"dispatch_batches": True}, {"dispatch_batches": False}])
def test_a_dataset_of_the_whole_job_is_divided_by_accelerate(dataset, options):
    for epoch, ranks in enumerate(
        zip(*run_ranks(2, read_all, dict(os.environ), str(dataset), "rank=0, world=1", options))
    ):
        assert sorted(itertools.chain(*ranks)) == sorted(epoch_order(COUNT, 7, epoch)[: STEPS * 2 * BATCH])


@pytest.mark.parametrize("way", ["single samples", "MapDataset"])
def test_what_every_rank_would_divide_again_is_refused_by_name(dataset, way):
    for said in run_ranks(2, read_all, dict(os.environ), str(dataset), way, {"dispatch_batches": False}):
        assert "samples would be left out" in said and "FeedLoader" in said


@pytest.mark.parametrize("way", ["DataLoader", "DataLoader with workers", "single samples"])
def test_what_rank_0_would_divide_again_is_refused_there(dataset, way):
    said, _ = run_ranks(2, read_all, dict(os.environ), str(dataset), way, {"dispatch_batches": True}, (0,))
    assert "samples would be left out" in said and "FeedLoader" in said
