"""A DataLoader worker that dies leaves an error of dsc's, with the state to go on from."""

import os
import re
import signal

import torch
from feed_support import COUNT

import dsc
from dsc.feed.order import epoch_order
from dsc.feed.worker_failure import explain_worker_failure

BATCH = 8
STATE = {"position": 16, "epoch": 0}


def make_loader(dataset, transform, workers):
    return dsc.FeedLoader(dsc.FeedDataset(dataset, batch_size=BATCH, seed=7, transform=transform), num_workers=workers)


def read_until_failure(dataset, read):
    """What a pass received, and how it ended. torch's handler of SIGCHLD raises wherever Python happens to be: where
    that was not in the loader, no loader could say more, and the pass is tried again.
    """
    for _ in range(10):
        received = []
        try:
            for batch in make_loader(dataset, read, 2):
                received += batch.tolist()
        except dsc.FeedGone as failure:
            return received, failure
        except RuntimeError as error:
            assert "killed by signal" in str(error)
    raise AssertionError("the worker never died while the loader waited for it")


def test_a_killed_worker_is_named_and_training_goes_on_from_the_state(dataset):
    fatal = epoch_order(COUNT, 7, 0)[5 * BATCH]

    def read(sample):
        if sample.id == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return sample.id

    received, failure = read_until_failure(dataset, read)
    assert re.search(r"DataLoader worker \(pid \d+\) was killed by SIGKILL", str(failure))
    rest = make_loader(dataset, lambda sample: sample.id, 0)
    rest.load_state_dict(failure.state)
    assert received + torch.cat(list(rest)).tolist() == epoch_order(COUNT, 7, 0)[: COUNT // BATCH * BATCH]


def test_a_worker_without_shared_memory_is_told_what_helps():
    error = RuntimeError("unable to allocate shared memory(shm) for file </torch_1>: No space left on device (28)")
    failure = explain_worker_failure(error, [], STATE)
    assert failure is not None and failure.code == "DISK_FULL" and "--shm-size" in str(failure)
    assert explain_worker_failure(RuntimeError("of the transform"), [], STATE) is None
