import itertools

import pytest
import torch
from feed_support import COUNT, length_of, sample_bytes

import dsc
from dsc.feed.order import epoch_order
from dsc.feed.position import Position

BATCH = 8
STEPS = COUNT // BATCH


def expected(epoch, seed=7):
    return epoch_order(COUNT, seed, epoch)[: STEPS * BATCH]


def as_id(sample):
    assert bytes(sample.data) == sample_bytes(sample.id, length_of(sample.id))
    assert sample.name == f"{sample.id:06}.bin"
    return sample.id


def make_loader(dataset, num_workers=0, **options):
    feed = dsc.FeedDataset(
        dataset,
        batch_size=options.pop("batch_size", BATCH),
        seed=7,
        transform=as_id,
        **{name: options.pop(name) for name in list(options) if name in ("rank", "world", "last", "memory", "depth")},
    )
    return dsc.FeedLoader(feed, num_workers=num_workers, **options)


def ids_of(batches):
    return torch.cat(list(batches)).tolist()


@pytest.mark.parametrize("num_workers,persistent", [(0, False), (1, False), (3, False), (2, True)])
def test_each_pass_is_the_next_epoch_in_its_order_for_any_number_of_workers(dataset, num_workers, persistent):
    loader = make_loader(dataset, num_workers, persistent_workers=persistent)
    assert len(loader) == STEPS
    for epoch in range(3):
        assert ids_of(loader) == expected(epoch)
    loader.close()


def test_a_plain_dataloader_advances_epochs_too(dataset):
    feed = dsc.FeedDataset(dataset, batch_size=BATCH, seed=7, transform=as_id)
    loader = torch.utils.data.DataLoader(feed, batch_size=None, num_workers=2)
    for epoch in range(2):
        assert list(itertools.chain(*loader)) == expected(epoch)


def test_ranks_share_each_global_batch(dataset):
    loaders = [make_loader(dataset, rank=rank, world=2, batch_size=4) for rank in range(2)]
    for epoch in range(2):
        steps = [torch.cat(pair).tolist() for pair in zip(*loaders, strict=True)]
        assert list(itertools.chain(*steps)) == expected(epoch)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_pass_left_early_is_followed_by_the_next_epoch(dataset, num_workers):
    loader = make_loader(dataset, num_workers)
    for _ in loader:
        break
    assert ids_of(loader) == expected(1)


@pytest.mark.parametrize("before,after", [(0, 0), (0, 2), (2, 0), (3, 1)])
def test_a_loader_resumes_behind_the_last_batch_received_with_other_workers(dataset, before, after):
    first = make_loader(dataset, before)
    received = ids_of(itertools.islice(first, 5))
    state = first.state_dict()
    assert (state["epoch"], state["position"]) == (0, 5 * BATCH)
    first.close()
    second = make_loader(dataset, after)
    second.load_state_dict(state)
    assert received + ids_of(second) == expected(0)
    assert ids_of(second) == expected(1)


def test_a_state_is_good_for_another_number_of_ranks(dataset):
    one = make_loader(dataset)
    received = ids_of(itertools.islice(one, 3))
    state = one.state_dict()
    one.close()
    two = [make_loader(dataset, rank=rank, world=2, batch_size=BATCH // 2) for rank in range(2)]
    for loader in two:
        loader.load_state_dict(state)
    rest = [torch.cat(pair).tolist() for pair in zip(*two, strict=True)]
    assert received + list(itertools.chain(*rest)) == expected(0)


def test_the_state_at_the_end_of_an_epoch_is_the_start_of_the_next(dataset):
    loader = make_loader(dataset)
    for _ in loader:
        state = loader.state_dict()
    assert (
        (state["epoch"], state["position"]) == (1, 0) == (loader.state_dict()["epoch"], loader.state_dict()["position"])
    )
    other = make_loader(dataset)
    other.load_state_dict(state)
    assert ids_of(other) == expected(1)


@pytest.mark.parametrize("change", [{"seed": 8}, {"listing": "x"}, {"n": 1}, {"position": 3}, {"last": "pad"}])
def test_a_state_that_does_not_fit_is_refused_by_name(dataset, change):
    loader = make_loader(dataset)
    with pytest.raises(dsc.FeedError) as caught:
        loader.load_state_dict({**loader.state_dict(), **change})
    assert caught.value.code == "FEED_STATE_MISMATCH"
    assert next(iter(change)) in str(caught.value)


def test_loading_a_state_ends_a_pass_that_was_begun_before(dataset):
    loader = make_loader(dataset)
    batches = iter(loader)
    next(batches)
    loader.load_state_dict(loader.state_dict())
    with pytest.raises(dsc.FeedError):
        next(batches)


def test_padding_is_flagged_and_wraps_around(dataset):
    feed = dsc.FeedDataset(dataset, batch_size=BATCH, seed=7, last="pad")
    samples = [(sample.id, sample.is_padded) for batch in feed for sample in batch]
    order = epoch_order(COUNT, 7, 0)
    padding = -COUNT % BATCH
    assert samples == [(id, False) for id in order] + [(id, True) for id in order[:padding]]


def test_views_are_read_only_and_copies_stay(dataset):
    feed = dsc.FeedDataset(dataset, batch_size=BATCH, seed=7, copy=True)
    batches = list(feed)
    assert [sample.id for batch in batches for sample in batch] == expected(0)
    for batch in batches:
        for sample in batch:
            as_id(sample)
    view = next(iter(dsc.FeedDataset(dataset, batch_size=4, seed=8))).views()[0]
    with pytest.raises(TypeError):
        view[0] = 1


@pytest.mark.parametrize("as_item", [None, lambda sample: sample])
def test_batches_survive_the_way_from_a_worker_that_asks_for_the_next_ones_meanwhile(dataset, monkeypatch, as_item):
    monkeypatch.setenv("DSC_FEED_DEBUG", "poison")  # whatever is read after it was given back is seen to be wrong
    feed = dsc.FeedDataset(dataset, batch_size=BATCH, seed=7, memory="128KiB", depth=2, transform=as_item)
    collate = (
        None
        if as_item is None
        else lambda samples: [(sample.id, torch.frombuffer(sample.data, dtype=torch.uint8)) for sample in samples]
    )
    loader = dsc.FeedLoader(feed, num_workers=2, prefetch_factor=4, collate_fn=collate)
    for epoch in range(4):
        items = [item for batch in loader for item in batch]
        received = items if as_item else [(sample.id, sample.data) for sample in items]
        assert [id for id, _ in received] == expected(epoch)
        for id, data in received:
            assert bytes(data) == sample_bytes(id, length_of(id))


def test_map_style_access_with_the_feeds_order(dataset):
    feed = dsc.FeedDataset(dataset, batch_size=BATCH, seed=7)
    samples, sampler = dsc.MapDataset(feed, transform=as_id), dsc.FeedBatchSampler(feed)
    assert len(samples) == COUNT and samples[5] == 5
    loader = torch.utils.data.DataLoader(samples, batch_sampler=sampler, num_workers=2)
    for epoch in range(2):
        assert ids_of(loader) == expected(epoch)


def test_a_place_is_read_back_after_a_longer_one():
    position = Position()
    for worker in range(40):
        position.begin("token", worker)
    position.set(3, 4)
    assert position.next() == (3, 4)
