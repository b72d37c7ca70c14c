"""Parquet files in `npm run bench -- formats`: the files, and loaders of their rows. A batch is a list of rows as dicts.

What a loader has to convert or index first is part of its time to the first batch: every run begins without a cache.
"""

import glob
import os
import random

import torch

BATCH = 64
FILES = 4
ROW_BY_ROW = 1500  # rows of an epoch of the loader that decodes a row group for each
LOADERS = ["pyarrow:0", "hf-map:0", "hf-map:2", "hf-iter:0", "hf-iter:2", "litdata-parquet:0", "litdata-parquet:2", "lance:0", "lance:2", "dsc:rows", "dsc:rows-2", "dsc:views", "dsc:groups"]
SHAPES = {"text": (1_000_000, 10_000), "images": (20_000, 200)}  # rows, rows in a group: 100 groups


def make_parquet(folder, shape, rows, group):
    """Files as `datasets` writes them: 200 bytes of text and a label, or 50 KB of bytes, a path and a label."""
    import pyarrow
    import pyarrow.parquet

    (folder / "parquet" / "data").mkdir(parents=True)
    image = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    r = random.Random(0)
    words = r.choices(["tulip", "rose", "the", "a", "of", "garden", "in"], k=200_000)
    prose = " ".join(words)
    for file in range(FILES):
        count = rows // FILES
        labels = pyarrow.array([r.randrange(1000) for _ in range(count)], pyarrow.int64())
        if shape == "text":
            starts = [r.randrange(len(prose) - 250) for _ in range(count)]
            first = pyarrow.array([prose[at : at + r.randrange(150, 250)] for at in starts])
        else:
            first = pyarrow.array([{"bytes": os.urandom(50_000), "path": None} for _ in range(count)], image)
        name = "text" if shape == "text" else "image"
        path = folder / "parquet" / "data" / f"train-{file:05}-of-{FILES:05}.parquet"
        pyarrow.parquet.write_table(pyarrow.table({name: first, "label": labels}), path, row_group_size=group)


def paths_of(root):
    return sorted(glob.glob(os.path.join(root, "parquet", "data", "*.parquet")))


class RowByRow(torch.utils.data.Dataset):
    """PyArrow: the row group of each row."""

    def __init__(self, root):
        import pyarrow.parquet

        self.files = [pyarrow.parquet.ParquetFile(path) for path in paths_of(root)]
        self.places = [
            (file, group, row)
            for file, each in enumerate(self.files)
            for group in range(each.num_row_groups)
            for row in range(each.metadata.row_group(group).num_rows)
        ]

    def __len__(self):
        return ROW_BY_ROW

    def __getitem__(self, i):
        file, group, row = self.places[random.randrange(len(self.places))]
        return self.files[file].read_row_group(group).slice(row, 1).to_pylist()[0]


class Lance(torch.utils.data.Dataset):
    """The format of LanceDB, asked for 64 rows at a time."""

    def __init__(self, path):
        self.path = path
        self.data = None

    def __len__(self):
        return self._open().count_rows()

    def __getitems__(self, ids):
        return self._open().take(ids).to_pylist()

    def _open(self):
        import lance

        if self.data is None:  # in each worker anew: it does not survive a fork
            self.data = lance.dataset(self.path)
        return self.data


def as_it_is(rows):
    return rows


def map_style(data, workers):
    spawn = {"multiprocessing_context": "spawn"} if workers and isinstance(data, Lance) else {}
    loader = torch.utils.data.DataLoader(data, BATCH, shuffle=True, num_workers=workers, collate_fn=as_it_is, drop_last=True, persistent_workers=workers > 0, **spawn)
    while True:
        yield iter(loader)


def pyarrow_rows(root, workers, scratch):
    yield from map_style(RowByRow(root), workers)


def hf_map(root, workers, scratch):
    """Converted to Arrow, then shuffled; the loader asks for 64 rows at a time (`__getitems__`)."""
    import datasets

    datasets.disable_progress_bars()
    features = features_of(datasets, paths_of(root)[0])
    data = datasets.load_dataset("parquet", data_files=paths_of(root), split="train", cache_dir=scratch, features=features)
    yield from map_style(data.shuffle(seed=1), workers)


def features_of(datasets, path):
    import pyarrow.parquet

    return datasets.Features.from_arrow_schema(pyarrow.parquet.read_schema(path))


def hf_iter(root, workers, scratch):
    """A shuffle of files and of a buffer of 1,000 rows."""
    import datasets

    data = datasets.load_dataset("parquet", data_files=paths_of(root), split="train", streaming=True, cache_dir=scratch)
    for epoch in range(1_000_000):
        shuffled = data.shuffle(seed=1, buffer_size=1000)
        shuffled.set_epoch(epoch)
        yield iter(torch.utils.data.DataLoader(shuffled, BATCH, num_workers=workers, collate_fn=as_it_is, drop_last=True))


def litdata_parquet(root, workers, scratch):
    """LitData on Parquet: chunks are files, shuffled in blocks."""
    import litdata
    from litdata.streaming.item_loader import ParquetLoader

    folder = os.path.join(root, "parquet", "data")
    litdata.index_parquet_dataset(folder, scratch)
    data = litdata.StreamingDataset(folder, index_path=scratch, item_loader=ParquetLoader(), shuffle=True, drop_last=True)
    loader = litdata.StreamingDataLoader(data, batch_size=BATCH, num_workers=workers, collate_fn=as_it_is)
    while True:
        yield iter(loader)


def lance_rows(root, workers, scratch):
    import lance
    import pyarrow.dataset

    path = os.path.join(scratch, "rows.lance")
    lance.write_dataset(pyarrow.dataset.dataset(paths_of(root)), path)
    yield from map_style(Lance(path), workers)


def dsc_rows(root, workers, options, views=False):
    """The rows of a feed; its cache is the run's own."""
    import dsc

    feed = dsc.FeedDataset(os.path.join(root, "parquet"), batch_size=BATCH, seed=1, feed_options=options)
    loader = dsc.FeedLoader(feed, num_workers=workers, persistent_workers=workers > 0, collate_fn=views_of if views else rows_of)

    def epochs():
        while True:
            yield iter(loader)

    return epochs(), feed


def rows_of(batch):
    return batch.rows()


def views_of(batch):
    return batch.rows(views=True)


def touch_rows(batch):
    for row in batch:
        value = row["text"] if "text" in row else row["image"]["bytes"]
        value[0], value[-1], row["label"]
    return len(batch)


PEERS = {"pyarrow": pyarrow_rows, "hf-map": hf_map, "hf-iter": hf_iter, "litdata-parquet": litdata_parquet, "lance": lance_rows}
