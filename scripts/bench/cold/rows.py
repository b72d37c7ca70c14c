"""One loader over a cold dataset, in a process of its own: prints one JSON line. Called by cold.mjs.

Usage: cold_rows.py LOADER ENDPOINT SET SCRATCH STEP_SECONDS. SET: objects | shards. SCRATCH is empty but for dsc.yaml.
Exit status 77: the loader is not installed, or has no way of its own to read this set.
"""

import atexit
import importlib
import io
import json
import os
import random
import sys
import tarfile
import time

loader, endpoint, dataset, scratch, step = sys.argv[1:]
STEP_SECONDS = float(step)
BATCH = 64
WORKERS = int(os.environ.get("COLD_WORKERS", "2"))
os.environ.update(
    AWS_ENDPOINT_URL=endpoint,
    S3_ENDPOINT_URL=endpoint,
    AWS_ACCESS_KEY_ID="bench",
    AWS_SECRET_ACCESS_KEY="bench-secret",
    AWS_REGION="us-east-1",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_EC2_METADATA_DISABLED="true",
)
os.chdir(scratch)


def dsc_feed(start):
    import dsc

    data = dsc.FeedDataset(dataset, batch_size=BATCH, seed=1, start=start)
    loaded = dsc.FeedLoader(data, collate_fn=lambda batch: [bytes(view) for view in batch.views()])
    return lambda epoch: loaded


def arriving():
    return dsc_feed("arriving")


def unproven():
    return dsc_feed("unproven")


def staged():
    return dsc_feed("staged")


def keys(suffix):
    import boto3

    pages = boto3.client("s3").get_paginator("list_objects_v2").paginate(Bucket="bench", Prefix=f"{dataset}/")
    return [item["Key"] for page in pages for item in page["Contents"] if item["Key"].endswith(suffix)]


def boto3():
    """A map-style DataLoader that asks for every object; shards as an iterable of shuffled shards."""
    import boto3 as sdk
    import torch

    listed = keys(".bin" if dataset == "objects" else ".tar")
    clients = {}

    def get(key):
        client = clients.setdefault(os.getpid(), None) or sdk.client("s3")
        clients[os.getpid()] = client
        return client.get_object(Bucket="bench", Key=key)["Body"].read()

    return torch_loader(torch, listed, get)


def s3torchconnector():
    import torch
    from s3torchconnector import S3MapDataset

    data = S3MapDataset.from_prefix(f"s3://bench/{dataset}/", region="us-east-1", endpoint=endpoint)
    places = range(len(data))
    return torch_loader(torch, places, lambda place: data[place].read())


def torch_loader(torch, items, get):
    if dataset == "objects":

        class Objects(torch.utils.data.Dataset):
            def __len__(self):
                return len(items)

            def __getitem__(self, place):
                return get(items[place])

        loaded = torch.utils.data.DataLoader(
            Objects(), BATCH, shuffle=True, num_workers=WORKERS, collate_fn=list, drop_last=True, persistent_workers=True
        )
        return lambda epoch: loaded

    class Shards(torch.utils.data.IterableDataset):
        epoch = 0

        def __iter__(self):
            worker = torch.utils.data.get_worker_info()
            order = list(items)
            random.Random(self.epoch).shuffle(order)
            for item in order[worker.id :: worker.num_workers]:
                with tarfile.open(fileobj=io.BytesIO(get(item))) as tar:
                    for member in tar:
                        yield tar.extractfile(member).read()

    data = Shards()

    def epoch_of(epoch):
        data.epoch = epoch
        return torch.utils.data.DataLoader(data, BATCH, num_workers=WORKERS, collate_fn=list, drop_last=True)

    return epoch_of


def mosaicml():
    import torch
    from streaming import StreamingDataset

    data = StreamingDataset(remote=f"s3://bench/{dataset}-mds", local=f"{scratch}/mds", shuffle=True, batch_size=BATCH)
    # Forked workers inherit the client that has read the index, and the one connection that it keeps: two workers that
    # use it take each other's answers, fail on what is in them, or wait for ever for what is not.
    for stream in data.streams:
        stream._downloader.clean_up()
    return lambda epoch: torch.utils.data.DataLoader(data, BATCH, num_workers=WORKERS, collate_fn=list, drop_last=True)


def litdata():
    from litdata import StreamingDataLoader, StreamingDataset
    from litdata.streaming import downloader

    downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = "true"  # stores of the world are encrypted
    options = {"endpoint_url": endpoint}
    data = StreamingDataset(
        f"s3://bench/{dataset}-lit", cache_dir=f"{scratch}/lit", shuffle=True, drop_last=True, storage_options=options
    )
    # Its samples are views of files, which do not go from one process to another.
    how = {"batch_size": BATCH, "num_workers": WORKERS, "drop_last": True}
    loaded = StreamingDataLoader(data, collate_fn=lambda batch: [bytes(view) for view in batch], **how)
    return lambda epoch: loaded


def measure(open_loader):
    began = time.perf_counter()
    epoch_of = open_loader()
    first = 0.0
    seconds = []
    for epoch in range(2):
        since = began if epoch == 0 else time.perf_counter()
        batches = 0
        for _ in epoch_of(epoch):
            first = first or time.perf_counter() - began
            batches += 1
            time.sleep(STEP_SECONDS)
        seconds.append(time.perf_counter() - since)
    print(json.dumps({"first": first, "epochs": seconds, "batches": batches}), flush=True)


# What takes seconds to import, and what a training script has imported anyway, is not measured.
PACKAGES = {"mosaicml": "streaming", "litdata": "litdata", "s3torchconnector": "s3torchconnector", "boto3": "boto3"}

try:
    for package in ("torch", PACKAGES.get(loader, "dsc")):
        importlib.import_module(package)
    measure(globals()[loader])
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)
atexit._run_exitfuncs()  # shared memory of MosaicML Streaming, which would stay
os._exit(0)  # loaders of others leave threads behind
