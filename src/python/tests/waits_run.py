"""Runs of trainers with a fault in them, and the truth about their waits: for `feed_waits_faults.py`."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

from feed_support import _stop_feeds, feeds, free_port, wait_until
from feed_waits_cluster import DSC, Cluster
from feed_waits_support import SlowDisk

PREPARER = "1"  # the Slurm job that stages for the others
HERE = pathlib.Path(__file__).parent


@dataclass
class Fault:
    """A run, what goes wrong in it, and who is to be named.

    `culprits`: place -> part of the name of its largest wait; a place that is not named waited less than two points.
    """

    spec: dict
    culprits: dict = field(default_factory=dict)
    during: object = None  # a context manager, as those below
    world: int = 1
    nodes: int = 1
    wrapped: bool = False  # in `dsc run`, without Slurm
    prepares: int = 0  # unused datasets that the job prepares before, on every node
    late: bool = False  # the last node prepares its dataset while the trainers of the others wait at a barrier
    kill_at: float = 0.0  # seconds of training after which the trainer is killed


# Faults: each is entered when all feeds are there, and left when the trainers have ended.


@contextlib.contextmanager
def slow_store(run):
    run.cluster.store.delay = 0.15
    run.cluster.store.is_open.set()
    yield
    run.cluster.store.delay = 0.0


@contextlib.contextmanager
def store_stands_still(run):
    store = run.cluster.store
    store.delay = 0.02
    store.is_open.set()
    timers = [threading.Timer(at, work) for at, work in ((0.4, store.is_open.clear), (4.0, store.is_open.set))]
    for timer in timers:
        timer.start()
    yield
    store.delay = 0.0


@contextlib.contextmanager
def node_stands_still(run):
    link = run.cluster.stripes()[1].link

    def hold_up():
        time.sleep(0.1)
        link.delay = 3.0
        time.sleep(0.5)
        link.delay = 0.0

    threading.Thread(target=hold_up, daemon=True).start()
    yield


@contextlib.contextmanager
def both_nodes_slow(run):
    links = [node.link for node in run.cluster.stripes()]
    links[0].delay, links[1].delay = 0.3, 0.05
    yield
    links[0].delay = links[1].delay = 0.0


@contextlib.contextmanager
def slow_disk(run):
    (feed,) = feeds(run.runtimes[0])
    disk = SlowDisk(feed, 0.06)
    yield
    disk.close()


@contextlib.contextmanager
def kill_feed(run):
    (feed,) = feeds(run.runtimes[0])
    timer = threading.Timer(3.0, os.kill, (feed, signal.SIGKILL))
    timer.start()
    yield


class Nodes(Cluster):
    """A cluster of two nodes with a record in common."""

    def __init__(self, folder, monkeypatch):
        super().__init__(folder, monkeypatch)
        self.reported = set()
        self._lying = {}
        text = (folder / "dsc.yaml").read_text()
        (folder / "dsc-1.yaml").write_text(text.replace("here", "there").replace("/cache\n", "/cache-1\n"))
        self.configs = [folder / "dsc.yaml", folder / "dsc-1.yaml"]

    def dsc(self, *words):
        """What a command of dsc prints."""
        return subprocess.run([*DSC, *words], capture_output=True, text=True, check=True).stdout

    @contextlib.contextmanager
    def serve_page(self):
        """An agent; yields the address of its page."""
        with (self.folder / "dsc.yaml").open("a") as settings:
            settings.write("agent:\n  listen: 127.0.0.1:0\n")
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        agent = subprocess.Popen([*DSC, "agent", "--json"], **pipes)
        try:
            yield json.loads(agent.stdout.readline())["url"]
        finally:
            agent.terminate()
            agent.wait()

    def lying(self, nodes, kind):
        """A dataset that lies on the disks of so many nodes."""
        name, on = self._lying.setdefault(kind, (None, set()))
        name = name or self.unused()
        for node in set(range(nodes)) - on:
            environment = {**os.environ, "DSC_CONFIG": str(self.configs[node]), "SLURM_JOB_ID": PREPARER}
            subprocess.run([*DSC, "prepare", name], check=True, stdout=subprocess.DEVNULL, env=environment)
        self._lying[kind] = name, on | set(range(nodes))
        return name


class Run:
    """The trainers of a fault, and what they printed."""

    def __init__(self, cluster, fault, job):
        self.cluster, self.fault, self.job = cluster, fault, job
        self.runtimes = [cluster.folder / f"runtime-{job}-{node}" for node in range(fault.nodes)]
        self.queued = []  # each time in the queue: its least and its most
        self.held = (0.0, 0.0)  # what trainers waited for the queue of another node
        self.port = str(free_port())
        self.spec = {"target": "staged", **fault.spec}
        self.spec["target"] = self.name(self.spec["target"])
        if "validation" in self.spec:
            self.spec["validation"] = self.name(self.spec["validation"])

    def name(self, target):
        """The dataset that a row calls so."""
        cluster = self.cluster
        if target in ("staged", "staged-2"):
            return cluster.lying(self.fault.nodes, target)
        if target == "stripes":
            nodes = ",".join(node.address for node in cluster.stripes())
            options = ["--from", nodes, "--layout", "striped", "--no-next"]
            self.spec["options"] = {"k": 4, "feed_options": options}
            return cluster.lying(1, "staged")
        name = cluster.unused()
        for config in cluster.configs[: self.fault.nodes - 1]:  # the last node fetches it while it trains
            environment = {**os.environ, "DSC_CONFIG": str(config), "SLURM_JOB_ID": PREPARER}
            subprocess.run([*DSC, "prepare", name], check=True, stdout=subprocess.DEVNULL, env=environment)
        return name

    def called(self, culprit):
        """The name in the report of what a row calls so."""
        if culprit.startswith("node-"):
            return self.cluster.stripes()[int(culprit[-1])].address
        return culprit

    def environment(self, rank=0):
        fault = self.fault
        node = rank * fault.nodes // fault.world
        own = {
            "DSC_CONFIG": str(self.cluster.configs[node]),
            "XDG_RUNTIME_DIR": str(self.runtimes[node]),
            "PYTHONPATH": str(HERE.parent),
            "OMP_NUM_THREADS": "1",
        }
        if not fault.wrapped:
            own["SLURM_JOB_ID"] = self.job
        if fault.world > 1:
            own |= {"RANK": str(rank), "WORLD_SIZE": str(fault.world), "MASTER_ADDR": "127.0.0.1"}
            own |= {"LOCAL_WORLD_SIZE": str(fault.world // fault.nodes), "MASTER_PORT": self.port}
        return {**os.environ, **own}

    def prepare(self):
        """Waits in the queue, if the row says so."""
        if self.fault.prepares:
            for number in range(self.fault.prepares):
                self.cluster.store.delay = 0.03 * (1 + 2 * number)
                name = self.cluster.unused() if number else self.spec["target"]
                for rank in range(0, self.fault.world, self.fault.world // self.fault.nodes):
                    took = self.prepare_on(rank, name)
                self.queued += [took] * self.fault.nodes  # for the last of them, which alone stages it
            self.cluster.store.delay = 0.0

    def prepare_on(self, rank, name):
        """How long a node stages a dataset: the least and the most."""
        self.cluster.store.busy, began = 0.0, time.monotonic()
        subprocess.run([*DSC, "prepare", name], check=True, stdout=subprocess.DEVNULL, env=self.environment(rank))
        return self.cluster.store.busy, time.monotonic() - began

    def start(self):
        words = [sys.executable, str(HERE / "waits_trainer.py"), json.dumps(self.spec)]
        if self.fault.wrapped:
            self.cluster.store.busy, self.cluster.store.delay = 0.0, 0.08
            words = [*DSC, "run", self.spec["target"], "--", *words]
        stages = self.fault.spec.get("target") == "unused"
        if stages:
            self.cluster.store.is_open.clear()
        began = time.monotonic()
        self.trainers = []
        for rank in range(self.fault.world):
            if self.fault.late and rank == self.fault.world - 1:
                self.cluster.store.delay = 0.08
                self.queued += [self.prepare_on(rank, self.spec["target"])]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            trainer = subprocess.Popen(words, env=self.environment(rank), **pipes)
            self.trainers += [trainer]
            if self.fault.late:
                trainer.stdin.write("\n")
                trainer.stdin.flush()
        self.told = [[json.loads(each.stdout.readline())] for each in self.trainers]
        if stages:
            self.queued += [(0.0, max(told[0]["opened"] for told in self.told))]
        if self.fault.wrapped:
            self.queued += [(self.cluster.store.busy, time.monotonic() - began)]
        self.cluster.store.delay = 0.0

    def train(self):
        during = self.fault.during(self) if self.fault.during else contextlib.nullcontext()
        with during:
            for each in self.trainers:
                each.stdin.write("\n")
                each.stdin.flush()
            if self.fault.kill_at:
                time.sleep(self.fault.kill_at)
                self.trainers[0].kill()
            for each, told in zip(self.trainers, self.told, strict=True):
                told += [json.loads(line) for line in each.stdout if line.endswith("}\n")]
                assert each.wait() == 0 or self.fault.kill_at
        if self.fault.late:
            setups = [told[1]["now"] - told[0]["now"] for told in self.told]
            self.held = tuple(min(each, max(setups) - min(setups)) for each in self.queued[0])

    def report(self):
        for runtime in self.runtimes:
            _stop_feeds(runtime / "dsc")
            wait_until(lambda runtime=runtime: not feeds(runtime))
        jobs = json.loads(self.cluster.dsc("report", "--job", "--json"))["jobs"]
        return [each for each in jobs if each["task"] not in self.cluster.reported]

    def truth(self):
        """Seconds of all ranks: waited, of these in their own work, in all; and how exact that is."""
        steps = [[line for line in told if "waited" in line] for told in self.told]
        if self.fault.spec.get("exchanges"):
            waited = sum(self.count_held(at) for at in zip(*steps, strict=True))
        else:
            waited = sum(line["waited"] for rank in steps for line in rank)
        worked = sum(line["worked"] for rank in steps for line in rank)
        took = sum(told[-1]["now"] - told[0]["now"] for told in self.told)
        blur = self.fault.world * sum(told[-1]["keptOff"] - told[0]["keptOff"] for told in self.told)
        if self.fault.spec.get("workers"):  # which start in the first step
            blur += sum(min(rank[0]["waited"], 0.5) for rank in steps)
        return waited, worked, took, blur

    def count_held(self, ranks):
        """What all ranks together lost in a step because some of them waited for data."""
        with_waits = max(rank["waited"] + rank["computed"] for rank in ranks)
        return len(ranks) * (with_waits - max(rank["computed"] for rank in ranks))
