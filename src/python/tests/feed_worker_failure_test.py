"""A DataLoader worker that dies leaves an error of dsc's, with the state to go on from."""

import multiprocessing
import os
import pickle
import re
import signal
import time

import pytest
import torch
from feed_support import COUNT

import dsc
from dsc.feed.handover import Sender, WorkerEnded
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


def send_and_die(to_trainer):
    sender = Sender(rooms=2)
    sender.pack(torch.ones(1000))  # the first batch tells how large a room has to be
    to_trainer.send(pickle.dumps(sender.pack(torch.ones(1000))))
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_batch_whose_worker_is_gone_is_told_as_that():
    from_worker, to_trainer = multiprocessing.Pipe(duplex=False)
    worker = multiprocessing.Process(target=send_and_die, args=(to_trainer,))
    worker.start()
    sent = from_worker.recv()
    worker.join()
    with pytest.raises(WorkerEnded) as lost:
        pickle.loads(sent)
    failure = explain_worker_failure(lost.value, [worker], STATE)
    assert failure is not None and f"(pid {worker.pid}) was killed by SIGKILL" in str(failure)


@pytest.mark.parametrize("error", [WorkerEnded("cannot open"), FileNotFoundError(2, "No such file"), EOFError()])
def test_a_worker_that_is_still_dying_is_waited_for(error):
    worker = multiprocessing.Process(target=lambda: (time.sleep(0.3), os.kill(os.getpid(), signal.SIGKILL)))
    worker.start()
    failure = explain_worker_failure(error, [worker], STATE)
    assert failure is not None and f"(pid {worker.pid}) was killed by SIGKILL" in str(failure)


def test_an_error_of_the_transform_is_left_alone():
    worker = multiprocessing.Process(target=time.sleep, args=(60,))
    worker.start()
    error = FileNotFoundError("Caught FileNotFoundError in DataLoader worker process 0.")
    assert explain_worker_failure(error, [worker], STATE) is None
    assert worker.is_alive()
    worker.kill()
    assert explain_worker_failure(FileNotFoundError(2, "No such file"), [], STATE) is None


def test_a_worker_without_shared_memory_is_told_what_helps():
    error = RuntimeError("unable to allocate shared memory(shm) for file </torch_1>: No space left on device (28)")
    failure = explain_worker_failure(error, [], STATE)
    assert failure is not None and failure.code == "DISK_FULL" and "--shm-size" in str(failure)
    assert explain_worker_failure(RuntimeError("of the transform"), [], STATE) is None
