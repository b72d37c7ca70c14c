"""A trainer for `feed_waits_faults.py`: trains as its argument says, and prints the truth about its time."""

import json
import os
import sys
import time

import torch
import torch.distributed as dist

from dsc.feed.dataset import FeedDataset
from dsc.feed.errors import FeedGone
from dsc.feed.loader import FeedLoader
from dsc.feed.map_style import FeedBatchSampler, MapDataset


class Slow:
    """Work of the user that takes a while, in one of every so many calls."""

    def __init__(self, seconds, every=1, phase=0, spins=False, result=lambda given: given.id):
        self.seconds, self.every, self.phase, self.spins, self.result = seconds, every, phase, spins, result
        self.calls, self.spent = 0, 0.0

    def __call__(self, given):
        began = time.monotonic()
        if self.seconds and self.calls % self.every == self.phase:
            while self.spins and time.monotonic() - began < self.seconds:
                pass
            if not self.spins:
                time.sleep(self.seconds)
        self.calls += 1
        self.spent += time.monotonic() - began
        return self.result(given)


def kept_off():
    """Returns the seconds that this thread was ready to run but waited for a processor (proc(5): schedstat)."""
    with open("/proc/thread-self/schedstat") as times:
        return int(times.read().split()[1]) / 1e9


def say(**fields):
    """Prints what the driver reads."""
    print(json.dumps({"now": time.monotonic(), "keptOff": kept_off(), **fields}), flush=True)


def make_loader(dataset, spec, collate):
    workers = spec.get("workers", 0)
    options = {"num_workers": workers, "persistent_workers": workers > 0}
    if spec.get("way") == "plain":
        return torch.utils.data.DataLoader(dataset, batch_size=None, collate_fn=collate, **options)
    if spec.get("way") == "map":
        return torch.utils.data.DataLoader(
            MapDataset(dataset, transform=dataset.transform),
            batch_sampler=FeedBatchSampler(dataset),
            collate_fn=collate,
            **options,
        )
    return FeedLoader(dataset, collate_fn=collate, ahead=spec.get("ahead", 0), **options)


class Trainer:
    """Trains, and keeps a stopwatch of its own beside dsc's."""

    def __init__(self, spec):
        self.spec = spec
        self.rank = int(os.environ.get("RANK", "0"))
        self.transform = Slow(*self.of_rank("transform", 0.0))
        self.validate = Slow(*self.of_rank("validate", 0.0))
        self.collate = Slow(*self.of_rank("collate", 0.0), result=len)
        self.step = self.of_rank("step", 0.05)[0]

    def of_rank(self, name, default):
        """The arguments of a fault: the same for all, or by rank."""
        given = self.spec.get(name, default)
        if isinstance(given, dict):
            given = given.get(str(self.rank), default)
        return given if isinstance(given, list) else [given]

    def open(self, target, transform, **options):
        options = {"batch_size": self.spec.get("batch", 8), **options}
        dataset = FeedDataset(target, transform=transform, **options)
        dataset.hold()
        return dataset

    def train(self, loader):
        own = (self.transform, self.validate, self.collate)
        asked, spent = time.monotonic(), sum(each.spent for each in own)
        batches = iter(loader)
        began = time.monotonic()
        starting = began - asked
        while True:
            is_over = next(batches, None) is None
            waited = time.monotonic() - asked
            worked = starting + sum(each.spent for each in own) - spent
            if not is_over:
                time.sleep(self.step + self.spec.get("copy", 0.0))
            computed = time.monotonic() - asked - waited
            if not is_over and self.spec.get("exchanges"):
                dist.all_reduce(torch.ones(1))
            say(waited=waited, worked=worked, computed=computed)
            if is_over:
                return
            starting, asked, spent = 0.0, time.monotonic(), sum(each.spent for each in own)

    def run(self):
        spec = self.spec
        asked = time.monotonic()
        dataset = self.open(spec["target"], self.transform, **spec.get("options", {}))
        say(opened=time.monotonic() - asked)
        sys.stdin.readline()
        if spec.get("exchanges"):
            dist.init_process_group("gloo")
        validation = self.open(spec["validation"], self.validate, seed=1) if "validation" in spec else None
        say(entered=True)
        loader = make_loader(dataset, spec, self.collate)
        for _ in range(spec.get("epochs", 6)):
            try:
                self.train(loader)
            except FeedGone as gone:  # it was killed
                loader.load_state_dict(gone.state)
                self.train(loader)
            if validation is not None:
                self.train(make_loader(validation, spec, self.collate))
            time.sleep(spec.get("pause", 0.0) if self.rank == 0 else 0.0)
        if spec.get("exchanges"):
            dist.barrier()
        getattr(loader, "close", dataset.close)()
        say(closed=True)


Trainer(json.loads(sys.argv[1])).run()
