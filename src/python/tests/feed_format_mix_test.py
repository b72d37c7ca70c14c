"""One mix of all formats: its laws, its bytes, its rows, and going on with other ranks after the feed was killed."""

import itertools
import json
import shutil
import tarfile

import pytest
from feed_support import ROOT, kill_feeds, sample_bytes

import dsc
from dsc.feed.order import mixed_order

SEED, BATCH = 19, 8
WEIGHTS = {"csv": 1, "files": 0.5, "jsonl": 2.25, "litdata": 1, "mds": 1.5, "parquet": 0.75, "tar": 1, "wds": 2}


@pytest.fixture
def folders(dataset):
    """A folder for each format, as the formats' own libraries wrote them where they have one."""
    base = dataset.parent / "parts"
    base.mkdir()
    for name in ("mds", "litdata"):
        shutil.copytree(ROOT / "fixtures" / "formats" / name, base / name)
    for name in ("parquet", "jsonl", "csv", "files", "tar", "wds"):
        (base / name).mkdir()
    shutil.copy(ROOT / "fixtures" / "parquet" / "zstd.parquet", base / "parquet")
    rows = [{"id": str(i), "text": "ü, " * (i % 4)} for i in range(30)]
    (base / "jsonl" / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (base / "csv" / "a.csv").write_text("id,text\r\n" + "".join(f'{i},"line\n{i}"\r\n' for i in range(17)))
    for i in range(25):
        (base / "files" / f"{i:03}.bin").write_bytes(sample_bytes(i, 100 + i))
    with tarfile.open(base / "tar" / "a.tar", "w") as one, tarfile.open(base / "wds" / "a.tar", "w") as pairs:
        for i in range(25):
            path = base / "files" / f"{i:03}.bin"
            one.add(path, path.name)
            pairs.add(path, f"{i:03}.bin")
            pairs.add(path, f"{i:03}.again")
    return base


def known(sample):
    """All that a sample is: its bytes, and its row where it has one."""
    try:
        row = {
            name: repr(bytes(value) if isinstance(value, memoryview) else value) for name, value in sample.row().items()
        }
    except dsc.FeedError:
        row = None
    return sample.id, sample.name, bytes(sample.data), row


def alone(folder):
    """The samples of one part by their names, as a feed of that part gives them."""
    with_names = dsc.FeedDataset(str(folder), batch_size=4, last="uneven", transform=known)
    return {name: (data, row) for batch in with_names for _, name, data, row in batch}


def open_mix(folders, **options):
    mix = {str(folders / name): weight for name, weight in WEIGHTS.items()}
    options = {"batch_size": BATCH, "seed": SEED, "transform": known, **options}
    return dsc.FeedLoader(dsc.FeedDataset(mix=mix, **options), collate_fn=list)


def test_a_mix_of_every_format_visits_each_as_often_as_it_should_and_goes_on_after_a_kill(folders):
    parts = {name: alone(folders / name) for name in WEIGHTS}
    assert {name: len(part) for name, part in parts.items() if name in ("mds", "litdata", "parquet")} == {
        "mds": 20,
        "litdata": 20,
        "parquet": 24,
    }
    assert all(row is not None for name in parts if name not in ("files", "tar") for _, row in parts[name].values())
    sizes = [(len(parts[name]), weight) for name, weight in WEIGHTS.items()]
    loader = open_mix(folders)
    for epoch in range(3):
        order = mixed_order(sizes, SEED, epoch)
        samples = list(itertools.chain(*loader))
        assert [id for id, *_ in samples] == order[: len(order) // BATCH * BATCH]
        for _, name, data, row in samples:
            part, _, inner = name.partition("/")
            assert (data, row) == parts[part][inner], name
    order = mixed_order(sizes, SEED, 3)
    received = [id for id, *_ in itertools.chain(*itertools.islice(loader, 5))]
    state = loader.state_dict()
    kill_feeds(folders)
    two = [open_mix(folders, rank=rank, world=2, batch_size=BATCH // 2) for rank in range(2)]
    for each in two:
        each.load_state_dict(state)
    for pair in zip(*two, strict=True):
        received += [id for id, *_ in itertools.chain(*pair)]
    assert received == order[: len(order) // BATCH * BATCH]
