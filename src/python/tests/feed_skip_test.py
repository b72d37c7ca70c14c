"""What becomes of samples that no source can give."""

import io
import itertools
import tarfile

import pytest
from feed_support import COUNT, length_of

import dsc
from dsc.feed.order import epoch_order

BATCH = 8
STEPS = COUNT // BATCH


def make_loader(dataset, num_workers, **options):
    feed = dsc.FeedDataset(
        dataset, batch_size=BATCH, seed=7, transform=lambda sample: sample.id, on_error="skip", **options
    )
    return dsc.FeedLoader(feed, num_workers=num_workers)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_lost_sample_is_left_out_of_its_batch_and_recorded_in_the_state(dataset, num_workers):
    loader = make_loader(dataset, num_workers)
    assert loader.dataset.info  # the feed has listed the samples
    order = epoch_order(COUNT, 7, 0)[: STEPS * BATCH]
    victim = order[30]
    (dataset / f"{victim:06}.bin").write_bytes(bytes(length_of(victim)))
    batches = iter(loader)
    received = [next(batches).tolist() for _ in range(5)]
    assert [len(batch) for batch in received] == [8, 8, 8, 7, 8]
    state = loader.state_dict()
    assert (state["position"], state["skipped"]) == (5 * BATCH, [[0, victim]])
    loader.close()
    resumed = make_loader(dataset, num_workers)
    resumed.load_state_dict(state)
    received += [batch.tolist() for batch in resumed]
    assert list(itertools.chain(*received)) == [id for id in order if id != victim]
    assert resumed.state_dict()["skipped"] == [[0, victim]]


def test_a_lost_sample_is_raised_by_name_unless_said_otherwise(dataset):
    feed = dsc.FeedDataset(dataset, batch_size=BATCH, seed=7)
    assert feed.info
    victim = epoch_order(COUNT, 7, 0)[30]
    (dataset / f"{victim:06}.bin").write_bytes(bytes(length_of(victim)))
    with pytest.raises(dsc.FeedError, match=f"sample {victim} ") as caught:
        list(feed)
    assert caught.value.code == "FEED_SAMPLE_LOST"
    with pytest.raises(ValueError, match="on_error"):
        dsc.FeedDataset(dataset, batch_size=BATCH, on_error="ignore")


def write_shard(path, count):
    with tarfile.open(path, "w") as shard:
        for id in range(count):
            member = tarfile.TarInfo(f"{id:03}.bin")
            member.size = 700
            shard.addfile(member, io.BytesIO(bytes([id]) * 700))


def test_what_comes_before_the_damage_of_a_shard_is_fed_where_python_says_so(tmp_path, dataset):
    folder = tmp_path / "shards"
    folder.mkdir()
    write_shard(folder / "0.tar", 9)
    with open(folder / "0.tar", "r+b") as shard:
        shard.truncate(5 * 1536 + 600)
    with pytest.raises(dsc.FeedError, match="0.tar"):
        next(iter(dsc.FeedDataset(folder, batch_size=1)))
    skipping = dsc.FeedDataset(folder, batch_size=1, on_error="skip", order="sequential")
    assert [bytes(sample.data)[0] for batch in skipping for sample in batch] == [0, 1, 2, 3]  # 4 may lack members


def test_a_folder_holds_what_python_says_it_holds(tmp_path, dataset):
    folder = tmp_path / "shards"
    folder.mkdir()
    write_shard(folder / "0.tar", 9)
    assert len(dsc.MapDataset(folder)) == 9
    assert len(dsc.MapDataset(folder, as_="files")) == 1
    with pytest.raises(ValueError, match="as_"):
        dsc.FeedDataset(folder, batch_size=1, as_="tar")
