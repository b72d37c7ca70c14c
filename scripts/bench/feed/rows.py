"""One loader, measured in a process of its own: prints one JSON line. Called by compare_loaders.py."""

import glob
import json
import os
import resource
import sys
import tempfile
import time
import warnings

import numpy
import parquet_rows
import torch

BATCH = 64
ENOUGH_SECONDS = 15  # no further epoch is begun after that, once two are there


class Files(torch.utils.data.Dataset):
    def __init__(self, root):
        self.paths = sorted(glob.glob(os.path.join(root, "raw", "*", "*.bin")))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with open(self.paths[i], "rb") as file:
            return file.read()


def collate(mode):
    return {"bytes": own_bytes, "tensor": stack_bytes, "jpeg": decode_batch}[mode]


def decode_batch(items):
    """JPEG to uint8 [samples, 3, 224, 224], the middle of each image."""
    return torch.stack([decode(item) for item in items])


def decode(item):
    import io

    from PIL import Image

    pixels = numpy.asarray(Image.open(io.BytesIO(item)).convert("RGB").crop((16, 16, 240, 240)))
    return torch.from_numpy(pixels.transpose(2, 0, 1).copy())


def own_bytes(items):
    return [bytes(item) for item in items]  # no copy of bytes; LitData's views cannot leave a worker


def stack_bytes(items):
    return torch.stack([torch.frombuffer(bytearray(item), dtype=torch.uint8) for item in items])


def torch_files(root, mode, workers):
    return _epochs(torch.utils.data.DataLoader(Files(root), BATCH, shuffle=True, num_workers=workers, collate_fn=collate(mode), drop_last=True, persistent_workers=workers > 0))


def stateful(root, mode, workers):
    from torchdata.stateful_dataloader import StatefulDataLoader

    return _epochs(StatefulDataLoader(Files(root), BATCH, shuffle=True, num_workers=workers, collate_fn=collate(mode), drop_last=True, persistent_workers=workers > 0))


def webdataset(root, mode, workers):
    import webdataset as wds

    shards = sorted(glob.glob(os.path.join(root, "tar", "*.tar")))
    data = wds.WebDataset(shards, shardshuffle=len(shards)).shuffle(1000).to_tuple("bin").map(lambda sample: sample[0])
    return _epochs(torch.utils.data.DataLoader(data, BATCH, num_workers=workers, collate_fn=collate(mode), drop_last=True))


def mosaicml(root, mode, workers):
    from streaming import StreamingDataset
    from streaming.base.util import clean_stale_shared_memory

    clean_stale_shared_memory()
    data = StreamingDataset(local=os.path.join(root, "mds"), shuffle=True, batch_size=BATCH)
    fn = collate(mode)
    return _epochs(torch.utils.data.DataLoader(data, BATCH, num_workers=workers, collate_fn=lambda items: fn([item["x"] for item in items]), drop_last=True))


def litdata(root, mode, workers):
    from litdata import StreamingDataLoader, StreamingDataset

    data = StreamingDataset(os.path.join(root, "lit"), shuffle=True, drop_last=True)
    return _epochs(StreamingDataLoader(data, batch_size=BATCH, num_workers=workers, collate_fn=collate(mode)))


def _epochs(loader):
    while True:
        yield iter(loader)


# What a feed reads, and the field of a row that is the sample.
FOLDERS = {"packed": "tar", "mds": "mds", "lit": "lit"}
FIELDS = {"mds": "x", "lit": "0"}


def dsc_feed(root, mode, kind, options=()):
    import dsc

    folder = os.path.join(root, FOLDERS.get(kind, "raw"))
    feed = dsc.FeedDataset(folder, batch_size=BATCH, seed=1, feed_options=options)
    if kind == "remote":
        feed.target = ""
    if kind in FIELDS:
        field, fn = FIELDS[kind], collate(mode)
        loader = dsc.FeedLoader(feed, collate_fn=lambda batch: fn([row[field] for row in batch.rows()]))
    elif mode == "tensor":
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        loader = dsc.FeedLoader(feed, ahead="auto", collate_fn=lambda batch: torch.from_numpy(batch.array()))
    elif mode == "jpeg":
        loader = dsc.FeedLoader(feed, num_workers=2, persistent_workers=True, collate_fn=lambda batch: decode_batch(batch.views()))
    else:
        loader = dsc.FeedLoader(feed, collate_fn=lambda batch: batch.views())
    return _epochs(loader), feed


def touch(batch, mode):
    if mode == "rows":
        return parquet_rows.touch_rows(batch)
    if mode == "bytes":
        for item in batch:
            item[0], item[-1]
    else:
        batch[:, 0].sum(), batch[:, -1].sum()
    return len(batch)


def cpu_seconds(pids):
    ticks = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as file:
                ticks += sum(map(int, file.read().rsplit(") ", 1)[1].split()[11:13]))
        except FileNotFoundError:
            pass
    return ticks / os.sysconf("SC_CLK_TCK")


def own_seconds():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def memory_mib(pids):
    """Memory of the processes, in MiB; what they share counts once."""
    kib = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                kib += next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return kib / 1024


def moved_bytes(feed):
    """Bytes that the feed has moved inside its arena to make room."""
    if feed is None:
        return 0
    status = dict(line.split(" ") for line in feed.connect().status().splitlines() if line[0] != "#" and "{" not in line)
    return float(status["dsc_feed_arena_moved_bytes_total"])


def children():
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path) as file:
                fields = file.read().rsplit(") ", 1)[1].split()
            if int(fields[1]) == os.getpid():
                found.append(int(path.split("/")[2]))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def main():
    torch.set_num_threads(1)  # stacking in the trainer's process must not fight over the cores
    row, root, mode, rounds, compute_ms = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
    storage_pids = [int(pid) for pid in os.environ.get("BENCH_STORAGE_PIDS", "").split(",") if pid]
    name, _, argument = row.partition(":")
    feed = None
    memory_before = memory_mib([os.getpid()])
    scratch = tempfile.mkdtemp(dir=root)  # compare_loaders.py removes it
    os.environ["XDG_CACHE_HOME"] = os.environ["HF_HOME"] = scratch  # what was converted before counts for nobody
    begun = time.perf_counter()
    if name == "dsc" and mode == "rows":
        kind, _, workers = argument.partition("-")
        options = [*json.loads(os.environ.get("BENCH_FEED_OPTIONS", "[]")), *(["--order", "groups-16"] if kind == "groups" else [])]
        epochs, feed = parquet_rows.dsc_rows(root, int(workers or 0), options, kind == "views")
        feed.connect()
    elif mode == "rows":
        epochs = parquet_rows.PEERS[name](root, int(argument), scratch)
    elif name == "dsc":
        epochs, feed = dsc_feed(root, mode, argument, json.loads(os.environ.get("BENCH_FEED_OPTIONS", "[]")))
    else:
        epochs = {"torch": torch_files, "stateful": stateful, "wds": webdataset, "mosaicml": mosaicml, "litdata": litdata}[name](root, mode, int(argument))
    feed_pid = [] if feed is None else [int(feed.info["arena"]["path"].split("/")[2])]
    results, first, last_end = [], None, None
    for _ in range(rounds):
        if len(results) >= 2 and time.perf_counter() - begun > ENOUGH_SECONDS:
            break
        batches, count, stalled = next(epochs), 0, 0.0
        start = time.perf_counter()
        gap = None
        pids = children() + feed_pid + storage_pids
        own, others = own_seconds(), cpu_seconds(set(pids))
        while True:
            asked = time.perf_counter()
            batch = next(batches, None)
            stalled += time.perf_counter() - asked
            if batch is None:
                break
            if first is None:
                first = time.perf_counter() - begun
            if gap is None:
                gap = time.perf_counter() - (last_end or start)
            count += touch(batch, mode)
            if compute_ms:
                time.sleep(compute_ms / 1000)
            last_end = time.perf_counter()
        seconds = time.perf_counter() - start
        cpu = own_seconds() - own + cpu_seconds(set(pids)) - others
        results.append({"rate": count / seconds, "cpu": cpu, "gap": gap, "stall": stalled / seconds})
    results = results[1:] or results
    batches = next(epochs)  # one more epoch is begun for the memory, while workers live
    for _ in range(8):
        next(batches, None)
    memory = memory_mib({os.getpid(), *children(), *feed_pid, *storage_pids}) - memory_before
    best = max(results, key=lambda result: result["rate"])
    print("RESULT " + json.dumps({"row": row, "first": first, "memory": memory, "moved": moved_bytes(feed), **best}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
