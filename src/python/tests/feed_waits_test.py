"""`dsc report --job` against injected truth: five kinds of faults in four ways each, and four ranks."""

import json
import os
import socket
import subprocess
import sys
import time

import pytest
from feed_support import _stop_feeds, feeds, sample_bytes
from feed_waits_support import DSC, SlowDisk, SlowStore, StorageNode, may_trace

from dsc.feed import waits
from dsc.feed.dataset import FeedDataset
from dsc.feed.loader import FeedLoader

SAMPLES, BATCH = 96, 8
DATASETS = 12
CLOSE = 2.0  # points of all GPU time; in runs of some seconds, of which a busy machine takes less


class Cluster:
    """A node with a record, datasets on a slow store, and two storage nodes behind slow links."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.runtime = folder / "runtime"
        files = {f"{id:06}.bin": sample_bytes(id, 4000 + id) for id in range(SAMPLES)}
        names = [f"set-{number}" for number in range(DATASETS)]
        self.store = SlowStore({f"{name}/{file}": body for name in names for file, body in files.items()})
        self.samples = folder / "samples"
        self.samples.mkdir()
        for file, body in files.items():
            (self.samples / file).write_bytes(body)
        sources = "".join(f"  {name}: {{source: s3://bucket/{name}/, {self.store.place}}}\n" for name in names)
        (folder / "dsc.yaml").write_text(
            f"node: here\ncache:\n  root: {folder}/cache\nrecord: sqlite:{folder}/record.db\n"
            f"stage:\n  concurrency: 2\ndatasets:\n{sources}"
        )
        for name, value in {
            "DSC_CONFIG": folder / "dsc.yaml",
            "XDG_CACHE_HOME": folder / "xdg",
            "XDG_RUNTIME_DIR": self.runtime,
        }.items():
            monkeypatch.setenv(name, str(value))
        for name in ("RANK", "WORLD_SIZE", "DSC_FEED_SOCKET", "DSC_FEED_JOB", "CUDA_VISIBLE_DEVICES"):
            monkeypatch.delenv(name, raising=False)
        self._unused = iter(names)
        self._nodes = []
        self._staged = None

    def unused(self):
        """A dataset that nobody has staged."""
        return next(self._unused)

    def staged(self):
        """A dataset that lies on the disk."""
        if self._staged is None:
            self._staged = self.unused()
            prepare(self._staged, job="1")
        return self._staged

    def stripes(self):
        if not self._nodes:
            self._nodes = [StorageNode(self.samples, f"{stripe}/2") for stripe in range(2)]
        return self._nodes

    def report(self, job):
        """What the record says of a job, once its feed has ended."""
        _stop_feeds(self.runtime / "dsc")
        until = time.monotonic() + 60
        while feeds(self.runtime) and time.monotonic() < until:
            time.sleep(0.05)
        said = subprocess.run([*DSC, "report", "--job", job, "--json"], capture_output=True, text=True, check=True)
        (found,) = json.loads(said.stdout)["jobs"]
        return found

    def close(self):
        for node in self._nodes:
            node.close()
        self.store.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        cluster = Cluster(tmp_path_factory.mktemp("waits"), monkeypatch)
        yield cluster
        _stop_feeds(cluster.runtime / "dsc")
        cluster.close()


@pytest.fixture
def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@pytest.fixture
def job(monkeypatch, request):
    """The number of a Slurm job that this test runs in."""
    number = str(5000 + request.session.items.index(request.node))
    monkeypatch.setenv("SLURM_JOB_ID", number)
    waits._clock.__init__()  # one process is one job
    return number


class Truth:
    """The stopwatch of a test: seconds waited, and all of them."""

    def __init__(self, step=lambda: None):
        self.waited = self.all = 0.0
        self._step = step

    def train(self, make_loader, epochs=1, compute=0.01):
        began = time.monotonic()
        loader = make_loader()
        for _ in range(epochs):
            asked = time.monotonic()
            batches = iter(loader)
            while True:
                batch = next(batches, None)
                self.waited += time.monotonic() - asked
                if batch is None:
                    break
                time.sleep(compute)
                self._step()
                asked = time.monotonic()
        self.all += time.monotonic() - began
        loader.close()


def check(found, least, most, place, culprit):
    """The share of waits lies between two truths, and most of it is laid at the right door."""
    share = 100 * found["waitedGpuMs"] / found["gpuMs"]
    assert least - CLOSE <= share <= most + CLOSE, (found, least, most)
    longest = found["waits"][0]
    assert longest["place"] == place and culprit in longest["culprit"], found
    laid = sum(each["gpuMs"] for each in found["waits"] if each["place"] == place and culprit in each["culprit"])
    assert laid > 0.5 * found["waitedGpuMs"], found


def check_train(cluster, job, truth, place, culprit):
    share = 100 * truth.waited / truth.all
    check(cluster.report(job), share, share, place, culprit)


def ready(target, **options):
    """A dataset whose feed is there before the clock begins."""
    dataset = FeedDataset(target, batch_size=BATCH, **options)
    dataset.hold()
    return dataset


@pytest.mark.parametrize("slow", [0, 1])
@pytest.mark.parametrize("delay", [0.2, 0.3])
def test_names_a_slow_storage_node(cluster, job, slow, delay):
    nodes = cluster.stripes()
    options = ["--from", ",".join(node.address for node in nodes), "--layout", "striped", "--no-next"]
    dataset = ready("set-0", k=4, feed_options=options)
    nodes[slow].link.delay = delay
    truth = Truth()
    try:
        truth.train(lambda: FeedLoader(dataset))
    finally:
        nodes[slow].link.delay = 0.0
    check_train(cluster, job, truth, "feed", nodes[slow].address)


@pytest.mark.skipif(not may_trace(), reason="strace may not hold up other processes")
@pytest.mark.parametrize("seconds", [0.06, 0.1])
@pytest.mark.parametrize("way", [[], ["--no-map", "--no-next"]])
def test_names_a_slow_disk(cluster, job, way, seconds):
    dataset = ready(cluster.staged(), feed_options=way, k=4)
    (feed,) = feeds(cluster.runtime)
    truth, disk = Truth(), SlowDisk(feed, seconds)
    try:
        truth.train(lambda: FeedLoader(dataset))
    finally:
        disk.close()
    check_train(cluster, job, truth, "feed", "disk")


@pytest.mark.parametrize("delay", [0.05, 0.15])
@pytest.mark.parametrize("start", ["arriving", "unproven"])
def test_names_a_slow_store(cluster, job, start, delay):
    name = cluster.unused()
    cluster.store.delay = delay
    truth = Truth()
    try:
        dataset = ready(name, start=start)
        truth.train(lambda: FeedLoader(dataset))
    finally:
        cluster.store.delay = 0.0
    check_train(cluster, job, truth, "feed", "store")


def slow_transform(sample):
    time.sleep(0.008)
    return sample.id


def slower_transform(sample):
    time.sleep(0.05)
    return sample.id


def slow_collate(batch):
    time.sleep(0.06)
    return len(batch)


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
    dataset = ready(cluster.staged(), transform=transform)
    truth = Truth()
    truth.train(lambda: FeedLoader(dataset, **options), epochs=4)
    check_train(cluster, job, truth, "transform", "transform")


def prepare(*names, job):
    """Prepares datasets for a job, one after the other. Gives the seconds that the commands took."""
    began = time.monotonic()
    for name in names:
        environment = {**os.environ, "SLURM_JOB_ID": job}
        subprocess.run([*DSC, "prepare", name], check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.monotonic() - began


@pytest.mark.parametrize("way", ["one", "two", "joined", "in the feed"])
def test_names_the_wait_for_staging(cluster, job, way):
    names = [cluster.unused() for _ in range(2 if way == "two" else 1)]
    cluster.store.delay, cluster.store.busy = 0.06, 0.0
    other, queued = None, 0.0
    truth = Truth()
    try:
        if way == "joined":
            environment = {**os.environ, "SLURM_JOB_ID": f"1{job}"}
            other = subprocess.Popen([*DSC, "prepare", names[0]], stdout=subprocess.DEVNULL, env=environment)
            while cluster.store.busy == 0:
                time.sleep(0.01)
        if way != "in the feed":
            queued = prepare(*names, job=job)
        if other:
            other.wait()
        dataset = FeedDataset(names[0], batch_size=BATCH, start="staged")
        if way != "in the feed":
            dataset.hold()
        truth.train(lambda: FeedLoader(dataset), compute=0.1)
    finally:
        cluster.store.delay = 0.0
    # How long a command begins and ends is no wait for staging: the record may say as little as the store took.
    least = 0.0 if way in ("joined", "in the feed") else cluster.store.busy
    share = [100 * (truth.waited + waited) / (truth.all + waited) for waited in (least, queued)]
    check(cluster.report(job), *share, "queue", names[0] if way != "two" else "set-")


_RANK = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch, torch.distributed as dist
from feed_waits_test import FeedDataset, FeedLoader, Truth, slower_transform

dist.init_process_group("gloo")
dataset = FeedDataset(sys.argv[2], batch_size=4, transform=slower_transform)
dataset.hold()
dist.barrier()
truth = Truth(step=lambda: dist.all_reduce(torch.ones(1)))
truth.train(lambda: FeedLoader(dataset), compute=0.1)
dist.barrier()
print(json.dumps([truth.waited, truth.all]))
"""


def test_adds_up_four_ranks_on_gloo(cluster, job, free_port):
    rank_of = {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port)}
    words = [sys.executable, "-c", _RANK, os.path.dirname(__file__), cluster.staged()]
    gpus = {"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7", "OMP_NUM_THREADS": "1"}  # two for each
    ranks = [
        subprocess.Popen(words, stdout=subprocess.PIPE, env={**os.environ, **rank_of, **gpus, "RANK": str(rank)})
        for rank in range(4)
    ]
    told = [json.loads(process.communicate(timeout=200)[0]) for process in ranks]
    share = 100 * sum(waited for waited, _ in told) / sum(all for _, all in told)
    found = cluster.report(job)
    check(found, share, share, "transform", "transform")
    assert found["gpus"] == 8
    assert abs(found["gpuMs"] - 2000 * sum(all for _, all in told)) < 0.05 * found["gpuMs"]
