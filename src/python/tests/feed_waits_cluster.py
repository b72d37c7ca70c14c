"""A cluster in which trainers wait, and the truth about how long: for the tests of `dsc report --job`."""

import contextlib
import json
import os
import sqlite3
import subprocess
import time

import pytest
from feed_support import _stop_feeds, feeds, sample_bytes, wait_until
from feed_waits_support import DSC, SlowStore, StorageNode

from dsc.feed import waits
from dsc.feed.dataset import FeedDataset

SAMPLES, BATCH = 96, 8
DATASETS = 16
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
            prepare(self._staged, "1")
        return self._staged

    def has_lease(self, job):
        """Whether a job holds a lease."""
        with contextlib.closing(sqlite3.connect(self.folder / "record.db", timeout=60)) as record:
            return any(job in task for (task,) in record.execute("SELECT task FROM leases"))

    def stripes(self):
        if not self._nodes:
            self._nodes = [StorageNode(self.samples, f"{stripe}/2") for stripe in range(2)]
        return self._nodes

    def report(self, job):
        """What the record says of a job, once its feed has ended."""
        _stop_feeds(self.runtime / "dsc")
        wait_until(lambda: not feeds(self.runtime))
        said = subprocess.run([*DSC, "report", "--job", job, "--json"], capture_output=True, text=True, check=True)
        (found,) = json.loads(said.stdout)["jobs"]
        return found

    def close(self):
        for node in self._nodes:
            node.close()
        self.store.close()


@pytest.fixture(name="cluster", scope="module")
def make_cluster(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        cluster = Cluster(tmp_path_factory.mktemp("waits"), monkeypatch)
        yield cluster
        _stop_feeds(cluster.runtime / "dsc")
        cluster.close()


@pytest.fixture(name="job")
def enter_job(monkeypatch, request):
    """The number of a Slurm job that this test runs in."""
    number = str(5000 + request.session.items.index(request.node))
    monkeypatch.setenv("SLURM_JOB_ID", number)
    waits._clock.__init__()  # one process is one job
    return number


def kept_off():
    """Returns the seconds that this thread was ready to run but waited for a processor (proc(5): schedstat)."""
    with open("/proc/thread-self/schedstat") as times:
        return int(times.read().split()[1]) / 1e9


class Truth:
    """The stopwatch of a test, in seconds: waited, and in all from when its feed is there, which took `opened`.

    For `blurred` of them this thread waited for a processor, perhaps between its own look at the clock and dsc's.
    """

    def __init__(self, step=lambda: None):
        self.waited = self.all = self.blurred = self.opened = 0.0
        self._began = None
        self._kept_off_before = 0.0
        self._step = step

    def ready(self, target, **options):
        """A dataset whose feed is there, from when on the clock runs."""
        asked, self._kept_off_before = time.monotonic(), kept_off()
        dataset = FeedDataset(target, **{"batch_size": BATCH, **options})
        dataset.hold()
        self._began = time.monotonic()
        self.opened = self._began - asked
        return dataset

    def ready_while_arriving(self, cluster, delay, **options):
        """A dataset that begins to arrive only when its feed is there and the trainer is, from a store this slow."""
        cluster.store.delay = delay
        cluster.store.is_open.clear()
        try:
            dataset = self.ready(cluster.unused(), **options)
            time.sleep(1)  # as a trainer that makes its model, which is no wait for the dataset
        finally:
            cluster.store.is_open.set()
        return dataset

    def train(self, make_loader, epochs=1, compute=0.01):
        if self._began is None:
            self._began, self._kept_off_before = time.monotonic(), kept_off()
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
        self.all += time.monotonic() - self._began
        self.blurred += kept_off() - self._kept_off_before
        getattr(loader, "close", lambda: None)()


def check_share(found, least, most):
    """The share of waits lies between two truths, in percent."""
    share = 100 * found["waitedGpuMs"] / found["gpuMs"]
    assert least - CLOSE <= share <= most + CLOSE, (found, least, most)


def laid(found, place, culprit):
    """The GPU-milliseconds of waits that the report lays at this door."""
    return sum(each["gpuMs"] for each in found["waits"] if each["place"] == place and culprit in each["culprit"])


def check(found, least, most, place, culprit):
    """The share of waits lies between two truths, and most of it is laid at the right door."""
    check_share(found, least, most)
    longest = found["waits"][0]
    assert longest["place"] == place and culprit in longest["culprit"], found
    assert laid(found, place, culprit) > 0.5 * found["waitedGpuMs"], found


def check_train(cluster, job, truth, place, culprit):
    least, most = (100 * (truth.waited + sign * truth.blurred) / truth.all for sign in (-1, 1))
    check(leave_out_queue(cluster.report(job), truth.opened), least, most, place, culprit)


def leave_out_queue(found, opened):
    """The report of a job from when its feed was there, for which it waited no longer than the test saw."""
    waits = [each for each in found["waits"] if each["place"] != "queue"]
    queued = laid(found, "queue", "")
    assert queued <= 1000 * opened, (found, opened)
    rest = {name: found[name] - queued for name in ("gpuMs", "waitedGpuMs")}
    return {**found, **rest, "waits": waits}


def begin_preparing(name, job):
    """The command that prepares a dataset for a job, under way."""
    environment = {**os.environ, "SLURM_JOB_ID": job}
    return subprocess.Popen([*DSC, "prepare", name], stdout=subprocess.DEVNULL, env=environment)


def prepare(name, job):
    """Prepares a dataset for a job."""
    assert begin_preparing(name, job).wait() == 0


def slow_transform(sample):
    time.sleep(0.008)
    return sample.id


def slow_collate(batch):
    time.sleep(0.06)
    return len(batch)
