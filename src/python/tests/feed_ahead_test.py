import threading
import time

import numpy
import pytest
from feed_support import COUNT, length_of, sample_bytes, wait_until

import dsc
from dsc.feed.order import epoch_order

BATCH = 8
STEPS = COUNT // BATCH


def expected(epoch):
    return epoch_order(COUNT, 7, epoch)[: STEPS * BATCH]


def make_loader(dataset, **options):
    feed = dsc.FeedDataset(
        dataset, batch_size=BATCH, seed=7, **{name: options.pop(name, None) for name in ("transform", "memory")}
    )
    return dsc.FeedLoader(feed, **options)


def assert_made(made, wanted):
    """Waits until as many batches are made as are wanted, and lets one too many show."""
    wait_until(lambda: len(made) >= len(wanted()))
    time.sleep(0.2)
    assert made == list(wanted())


@pytest.mark.parametrize("ahead", [1, 3, "auto"])
def test_views_read_ahead_stay_whole_until_the_next_batch_is_asked_for(dataset, ahead, monkeypatch):
    monkeypatch.setenv("DSC_FEED_DEBUG", "poison")  # what was given back is seen to be
    loader = make_loader(dataset, memory="64MiB", ahead=ahead, collate_fn=lambda batch: (batch.ids, batch.views()))
    for epoch in range(3):
        seen = []
        for ids, views in loader:
            time.sleep(0.002)  # the feed would have overwritten them by now, if they had been given back
            assert [bytes(view) for view in views] == [sample_bytes(id, length_of(id)) for id in ids]
            seen += ids
        assert seen == expected(epoch)
    loader.close()


def test_the_feed_chooses_how_many_batches_are_ahead(dataset):
    made = []
    loader = make_loader(dataset, ahead="auto", collate_fn=lambda batch: made.append(batch.step))
    batches = iter(loader)
    next(batches)
    wait_until(lambda: loader.dataset.connections.keep > 3)  # they are small
    assert_made(made, lambda: range(1 + min(STEPS - 1, loader.dataset.connections.keep)))
    loader.close()


def test_batches_are_made_in_another_thread_and_only_so_many_ahead(dataset):
    made, threads = [], set()

    def collate(batch):
        made.append(batch.step)
        threads.add(threading.get_ident())
        return batch.step

    loader = make_loader(dataset, ahead=2, collate_fn=collate)
    batches = iter(loader)
    assert next(batches) == 0
    assert_made(made, lambda: range(3))
    assert threading.get_ident() not in threads
    loader.close()


def test_the_state_counts_what_the_trainer_has_received_not_what_is_ahead(dataset):
    loader = make_loader(dataset, ahead=2, collate_fn=lambda batch: batch.ids)
    batches = iter(loader)
    seen = next(batches) + next(batches)
    time.sleep(0.1)
    state = loader.state_dict()
    loader.load_state_dict(state)
    with pytest.raises(dsc.FeedError, match="pass has ended"):
        next(batches)
    for ids in loader:
        seen += ids
    assert seen == expected(0)
    loader.close()


def test_a_pass_left_early_ends_its_thread_and_the_next_epoch_follows(dataset):
    loader = make_loader(dataset, ahead=2, collate_fn=lambda batch: batch.ids)
    for _ in loader:
        break
    assert [id for ids in loader for id in ids] == expected(1)
    assert not [each for each in threading.enumerate() if each.name == "dsc-feed-ahead"]
    loader.close()


def test_what_fails_in_the_thread_is_raised_in_the_trainer(dataset):
    def fail(sample):
        raise ValueError(f"sample {sample.id} is odd")

    loader = make_loader(dataset, ahead=1, transform=fail)
    with pytest.raises(ValueError, match="is odd"):
        next(iter(loader))
    loader.close()


def test_ahead_with_workers_is_refused(dataset):
    with pytest.raises(ValueError, match="without workers"):
        make_loader(dataset, ahead=1, num_workers=1)


def test_equal_samples_become_one_array_a_view_where_they_lie_side_by_side(tmp_path, dataset):
    folder = tmp_path / "equal"
    folder.mkdir()
    for id in range(64):
        (folder / f"{id:03}.bin").write_bytes(sample_bytes(id, 128))
    feed = dsc.FeedDataset(folder, batch_size=BATCH, seed=7)
    kinds = set()
    for _ in range(3):
        for batch in feed.batches():
            rows = numpy.array([list(sample_bytes(id, 128)) for id in batch.ids], dtype=numpy.uint8)
            array, stacked = batch.array(), batch.stack()
            assert (array == rows).all() and (stacked == rows).all()
            assert stacked.flags.writeable
            kinds.add(array.flags.writeable)
    assert kinds == {False, True}  # side by side in the first epoch; kept ones, in another order, in later ones
    feed.close()


@pytest.mark.parametrize("length", [100, 20_000])
def test_equal_samples_of_mapped_files_become_one_array_that_may_be_written_to(tmp_path, length):
    lines = [f'{{"text":"{id:03}{"x" * length}"}}'.encode() for id in range(64)]
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join(lines))
    (tmp_path / "rows.jsonl").chmod(0o444)  # mapped are files that nobody may write to
    feed = dsc.FeedDataset(tmp_path, batch_size=BATCH, seed=7)
    for batch in feed.batches():
        for stacked in (batch.array(), batch.stack()):
            assert [bytes(row) for row in stacked] == [lines[id] for id in batch.ids]
            assert stacked.flags.writeable
    assert feed.info["mapped"]
    feed.close()


def test_samples_of_different_lengths_are_no_array(dataset):
    feed = dsc.FeedDataset(dataset, batch_size=BATCH, seed=7)
    batch = next(feed.batches())
    for make in (batch.array, batch.stack):
        with pytest.raises(ValueError, match="different lengths"):
            make()
    feed.close()
