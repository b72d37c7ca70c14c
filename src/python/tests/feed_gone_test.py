"""A feed that dies leaves its trainers an error that says where they were; from there they go on."""

import itertools
import pickle

import pytest
import torch
from feed_support import COUNT, kill_feeds, length_of

import dsc
from dsc.feed.order import epoch_order

BATCH = 4
STEPS = COUNT // BATCH
BEFORE = 5  # batches that the trainer has when the feed is killed
DEPTH = 4  # of 25 batches per worker: small ones would all be on their way before the feed is killed


def expected(epoch):
    return epoch_order(COUNT, 7, epoch)[: STEPS * BATCH]


def make_feed(dataset, **options):
    return dsc.FeedDataset(
        dataset, **{"batch_size": BATCH, "seed": 7, "depth": DEPTH, "transform": lambda sample: sample.id, **options}
    )


def read_until_gone(loader, dataset, epoch=0):
    """Kills the feed in the middle of the pass; returns what was received, and the error."""
    received = []
    with pytest.raises(dsc.FeedGone) as caught:
        for step, batch in enumerate(loader):
            received += torch.as_tensor(batch).tolist()
            if step + 1 == BEFORE:
                assert len(kill_feeds(dataset)) == 1
    assert BEFORE * BATCH <= len(received) < STEPS * BATCH
    return received, caught.value


@pytest.mark.parametrize(
    "options", [{}, {"ahead": 2}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}]
)
def test_a_killed_feed_is_an_error_with_the_state_from_which_another_feed_goes_on(dataset, options):
    loader = dsc.FeedLoader(make_feed(dataset), **options)
    received, error = read_until_gone(loader, dataset)
    assert error.code == "FEED_GONE"
    assert error.state == loader.state_dict()
    assert (error.state["epoch"], error.state["position"]) == (0, len(received))
    assert str(error).count(f"{len(received)} samples of epoch 0 were received") == 1
    assert "load_state_dict(error.state)" in str(error)
    other = dsc.FeedLoader(make_feed(dataset), **options)
    other.load_state_dict(error.state)
    assert received + torch.cat(list(other)).tolist() == expected(0)
    assert torch.cat(list(other)).tolist() == expected(1)
    other.close()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_the_loader_itself_goes_on_with_a_feed_that_it_starts_again(dataset, num_workers):
    loader = dsc.FeedLoader(make_feed(dataset), num_workers=num_workers, persistent_workers=num_workers > 0)
    assert torch.cat(list(loader)).tolist() == expected(0)
    received, error = read_until_gone(loader, dataset)
    loader.load_state_dict(error.state)
    assert received + torch.cat(list(loader)).tolist() == expected(1)
    loader.close()


def test_a_dataset_without_a_loader_says_where_it_was_too(dataset):
    received, error = read_until_gone(make_feed(dataset), dataset)
    assert error.state["position"] == len(received)
    loader = dsc.FeedLoader(make_feed(dataset))
    loader.load_state_dict(error.state)
    assert received + torch.cat(list(loader)).tolist() == expected(0)


def test_the_state_of_the_error_has_the_samples_that_were_skipped_though_the_feed_cannot_be_asked(dataset):
    feed = make_feed(dataset, on_error="skip")
    assert feed.info  # the feed has listed the samples
    victim = expected(0)[2 * BATCH]
    (dataset / f"{victim:06}.bin").write_bytes(bytes(length_of(victim)))
    received, error = read_until_gone(dsc.FeedLoader(feed, num_workers=2), dataset)
    assert victim not in received
    assert error.state["skipped"] == [[0, victim]]


def test_a_batch_sampler_says_which_ids_it_has_given(dataset):
    feed = make_feed(dataset, batch_size=1)
    sampler = dsc.FeedBatchSampler(feed)
    ids = iter(sampler)
    given = [next(ids)[0] for _ in range(64)]
    kill_feeds(dataset)
    with pytest.raises(dsc.FeedGone) as caught:
        next(ids)
    feed.close()
    other = dsc.FeedBatchSampler(feed)
    other.load_state_dict(caught.value.state)
    assert given + list(itertools.chain(*other)) == epoch_order(COUNT, 7, 0)


def test_a_feed_that_cannot_start_gives_the_advice_of_dsc_alone(tmp_path, monkeypatch):
    (tmp_path / "dsc.yaml").write_text("datasets:\n  flowers: { source: s3://bucket/flowers/ }\n")
    monkeypatch.setenv("DSC_CONFIG", str(tmp_path / "dsc.yaml"))
    with pytest.raises(dsc.FeedError, match="no dataset is called flwers") as caught:
        next(iter(dsc.FeedDataset("flwers", batch_size=2)))
    assert str(caught.value).count("try: ") == 1 and "try: dsc prepare flowers" in str(caught.value)
    assert caught.value.code == "DATASET_UNKNOWN"


def test_a_feed_for_which_there_is_no_room_has_the_code_of_that(dataset, monkeypatch):
    folder = dataset.parent
    cache = f"{{ root: {folder}/root, minFree: 900TiB }}"
    (folder / "dsc.yaml").write_text(f"cache: {cache}\ndatasets:\n  flowers: {{ source: 'file://{dataset}/' }}\n")
    monkeypatch.setenv("DSC_CONFIG", str(folder / "dsc.yaml"))
    with pytest.raises(dsc.FeedError, match="no room for flowers") as caught:
        next(iter(dsc.FeedDataset("flowers", batch_size=2)))
    assert caught.value.code == "QUOTA_EXCEEDED" and not isinstance(caught.value, dsc.FeedGone)


def test_the_error_keeps_its_state_on_the_way_between_processes():
    error = pickle.loads(pickle.dumps(dsc.FeedGone("it is gone", "a hint", {"epoch": 3})))
    assert (error.code, error.message, error.hint, error.state) == ("FEED_GONE", "it is gone", "a hint", {"epoch": 3})
