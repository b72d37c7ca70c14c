"""`dsc report --job` against injected truth: five kinds of faults in four ways each, and four ranks."""

import json
import os
import subprocess
import sys
import time

import pytest
from feed_support import feeds, free_port, wait_until
from feed_waits_cluster import (  # noqa: F401
    BATCH,
    Truth,
    begin_preparing,
    check,
    check_share,
    check_train,
    enter_job,
    laid,
    make_cluster,
    prepare,
    slow_collate,
    slow_transform,
)
from feed_waits_support import SlowDisk, may_trace

from dsc.feed.dataset import FeedDataset
from dsc.feed.loader import FeedLoader


@pytest.mark.parametrize("slow", [0, 1])
@pytest.mark.parametrize("delay", [0.2, 0.3])
def test_names_a_slow_storage_node(cluster, job, slow, delay):
    nodes = cluster.stripes()
    options = ["--from", ",".join(node.address for node in nodes), "--layout", "striped", "--no-next"]
    truth = Truth()
    dataset = truth.ready("set-0", k=4, feed_options=options)
    nodes[slow].link.delay = delay
    try:
        truth.train(lambda: FeedLoader(dataset))
    finally:
        nodes[slow].link.delay = 0.0
    check_train(cluster, job, truth, "feed", nodes[slow].address)


@pytest.mark.skipif(not may_trace(), reason="strace may not hold up other processes")
@pytest.mark.parametrize("seconds", [0.06, 0.1])
@pytest.mark.parametrize("way", [[], ["--no-map", "--no-next"]])
def test_names_a_slow_disk(cluster, job, way, seconds):
    truth = Truth()
    dataset = truth.ready(cluster.staged(), feed_options=way, k=4)
    (feed,) = feeds(cluster.runtime)
    disk = SlowDisk(feed, seconds)
    try:
        truth.train(lambda: FeedLoader(dataset))
    finally:
        disk.close()
    check_train(cluster, job, truth, "feed", "disk")


@pytest.mark.parametrize("delay", [0.05, 0.15])
@pytest.mark.parametrize("start", ["arriving", "unproven"])
def test_names_a_slow_store(cluster, job, start, delay):
    truth = Truth()
    try:
        dataset = truth.ready_while_arriving(cluster, delay, start=start)
        truth.train(lambda: FeedLoader(dataset))
    finally:
        cluster.store.delay = 0.0
    check_train(cluster, job, truth, "feed", "store")


def slower_transform(sample):
    time.sleep(0.05)
    return sample.id


@pytest.mark.parametrize(
    ("transform", "options"),
    [
        (slow_transform, {}),
        (None, {"collate_fn": slow_collate}),
        (slow_transform, {"num_workers": 1}),
        (slow_transform, {"ahead": 2}),
    ],
)
def test_names_a_slow_transform(cluster, job, transform, options):
    truth = Truth()
    dataset = truth.ready(cluster.staged(), transform=transform)
    truth.train(lambda: FeedLoader(dataset, **options), epochs=4)
    check_train(cluster, job, truth, "transform", "transform")


def prepare_joined(cluster, name, job):
    """Prepares a dataset of which another job has begun to stage nothing but the listing."""
    cluster.store.is_open.clear()
    try:
        other = begin_preparing(name, "1")
        wait_until(lambda: cluster.store.busy > 0)
        own = begin_preparing(name, job)
        wait_until(lambda: cluster.has_lease(job))
    finally:
        cluster.store.listed_at = time.monotonic()
        cluster.store.is_open.set()
    assert (own.wait(), other.wait()) == (0, 0)


@pytest.mark.parametrize("way", ["one", "two", "joined", "in the feed"])
def test_names_the_wait_for_staging(cluster, job, way):
    names = [cluster.unused() for _ in range(2 if way == "two" else 1)]
    cluster.store.delay = 0.06
    truth, queued, least = Truth(), 0.0, {}  # the wait of each dataset is at least what the store took
    try:
        for name in names:
            cluster.store.busy, began = 0.0, time.monotonic()
            if way == "joined":
                prepare_joined(cluster, name, job)
            elif way != "in the feed":
                prepare(name, job)
            queued, least[name] = queued + time.monotonic() - began, cluster.store.busy
        make = FeedDataset if way == "in the feed" else truth.ready
        dataset = make(names[0], batch_size=BATCH, start="staged")
        truth.train(lambda: FeedLoader(dataset), compute=0.1)
    finally:
        cluster.store.delay = 0.0
    found = cluster.report(job)
    bounds = ((-truth.blurred, sum(least.values())), (truth.blurred, queued))
    check_share(found, *(100 * (truth.waited + blur + more) / (truth.all + more) for blur, more in bounds))
    if way == "in the feed":  # its wait is among those of the trainer
        least[names[0]] = cluster.store.busy
    for name, seconds in least.items():
        assert laid(found, "queue", name) >= 1000 * seconds, (found, seconds)


_RANK = """
import json, os, sys, time
sys.path.insert(0, sys.argv[1])
import torch, torch.distributed as dist
from feed_waits_test import FeedLoader, Truth, slower_transform

is_slow = os.environ["RANK"] in sys.argv[3]
transform = slower_transform if is_slow else lambda sample: sample.id
dist.init_process_group("gloo")
exchanged = 0.0

def exchange():
    global exchanged
    began = time.monotonic()
    dist.all_reduce(torch.ones(1))
    exchanged += time.monotonic() - began

truth = Truth(step=exchange)
dataset = truth.ready(sys.argv[2], batch_size=4, transform=transform)
dist.barrier()
truth.train(lambda: FeedLoader(dataset), compute=0.1)
dist.barrier()
print(json.dumps([truth.waited, exchanged, truth.all, truth.blurred]))
"""


@pytest.mark.parametrize("slow", ["0123", "2"])
def test_adds_up_four_ranks_on_gloo(cluster, job, slow):
    rank_of = {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    words = [sys.executable, "-c", _RANK, os.path.dirname(__file__), cluster.staged(), slow]
    gpus = {"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7", "OMP_NUM_THREADS": "1"}  # two for each
    ranks = [
        subprocess.Popen(words, stdout=subprocess.PIPE, env={**os.environ, **rank_of, **gpus, "RANK": str(rank)})
        for rank in range(4)
    ]
    told = [json.loads(process.communicate(timeout=200)[0]) for process in ranks]
    waited, exchanged, total, blurred = (sum(each) for each in zip(*told, strict=True))
    # The rank that came last to an exchange waited for the network alone.
    least = waited if slow != "2" else waited + exchanged - 4 * min(each for _, each, *_ in told)
    found = cluster.report(job)
    # For a rank that others kept off the processors, all of them waited, and for no feed.
    bounds = (least - 4 * blurred, waited + exchanged + 4 * blurred)
    check(found, *(100 * bound / total for bound in bounds), "transform", "transform")
    assert found["gpus"] == 8
    assert abs(found["gpuMs"] - 2000 * total) < 0.05 * found["gpuMs"] + 2000 * blurred
    assert found["waits"][0]["culprit"] == ("transform of rank 2" if slow == "2" else "transform")
