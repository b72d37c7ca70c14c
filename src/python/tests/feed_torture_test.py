"""Trainers, and sometimes their feed, are killed again and again; each life goes on in another shape."""

import itertools
import json
import os
import random
import signal
import subprocess
import time

import pytest
from feed_support import COUNT, kill_feeds, length_of, sample_bytes

import dsc
from dsc.feed.launch import dsc_command
from dsc.feed.order import epoch_order

GLOBAL_BATCH = 8
STEPS = COUNT // GLOBAL_BATCH
LIVES = int(os.environ.get("DSC_TEST_KILLS", 20))


def as_id(sample):
    assert bytes(sample.data) == sample_bytes(sample.id, length_of(sample.id))
    return sample.id


class Rank:
    """A process of its own that takes one step for each byte it gets, and then says what it received."""

    def __init__(self, dataset, state, **options):
        workers = options.pop("workers")
        go_read, self._go = os.pipe()
        self._said, said_write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()  # its workers die with it
                self._train(dataset, state, workers, options, go_read, said_write)
            except BaseException as error:
                os.write(said_write, f"{error!r}\n".encode())
            finally:
                os._exit(1)
        os.close(go_read)
        os.close(said_write)

    def _train(self, dataset, state, workers, options, go, said):
        loader = dsc.FeedLoader(
            dsc.FeedDataset(dataset, seed=7, transform=as_id, timeout=60, **options), num_workers=workers
        )
        if state is not None:
            loader.load_state_dict(state)
        batches = itertools.chain.from_iterable(itertools.repeat(loader))
        while os.read(go, 1):
            ids = next(batches).tolist()
            os.write(said, (json.dumps([ids, loader.state_dict()]) + "\n").encode())

    def step(self):
        os.write(self._go, b".")

    def received(self):
        line = b""
        while not line.endswith(b"\n"):
            part = os.read(self._said, 1 << 16)
            if not part:
                raise AssertionError("a rank ended without a word")
            line += part
        try:
            return json.loads(line)
        except ValueError:
            raise AssertionError(line.decode()) from None

    def kill(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:  # it had not yet got its own group
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._go)
        os.close(self._said)


@pytest.fixture
def storage(dataset):
    """Addresses of one storage node with everything, and of three with a stripe each."""
    started = []

    def start(*words):
        command = [*dsc_command(), "feed", "storage", str(dataset), "--listen", "127.0.0.1:0", "--json", *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        text = ""
        for line in process.stdout:
            text += line
            try:
                return f"127.0.0.1:{json.loads(text)['port']}"
            except ValueError:
                continue
        raise AssertionError("the storage node has ended")

    yield {
        0: (),
        1: ("--from", start()),
        3: ("--from", ",".join(start("--stripe", f"{i}/3") for i in range(3)), "--layout", "striped"),
    }
    for process in started:
        process.kill()
        process.wait()


def test_lives_that_end_by_sigkill_make_one_uninterrupted_sequence(dataset, storage):
    seed = int(os.environ.get("DSC_TEST_SEED", 11))
    print(f"DSC_TEST_SEED={seed}")
    chance = random.Random(seed)
    received, state, shapes = [], None, []
    for life in range(LIVES):
        world = chance.choice([1, 2, 4])
        shape = {
            "world": world,
            "workers": chance.choice([0, 0, 2]),
            "k": chance.choice(["auto", 1, 5]),
            "memory": chance.choice(["192KiB", "1MiB"]),
            "nodes": chance.choice([0, 1, 3]),
        }
        shapes.append(shape)
        options = {**shape, "feed_options": storage[shape["nodes"]], "batch_size": GLOBAL_BATCH // world}
        del options["nodes"]
        ranks = [Rank(dataset, state, rank=rank, **options) for rank in range(world)]
        done = len(received) // GLOBAL_BATCH % STEPS
        steps = STEPS - done if life % 10 == 5 else chance.randint(0, 9)  # every tenth ends exactly with an epoch
        for _ in range(steps):
            for rank in ranks:
                rank.step()
            said = [rank.received() for rank in ranks]
            received += itertools.chain(*(ids for ids, _ in said))
            assert all(rank_state == said[0][1] for _, rank_state in said), "the state differs between ranks"
            state = said[0][1]
        for rank in ranks[: chance.randint(0, world)]:  # these die in the middle of a step, or of connecting
            rank.step()
        time.sleep(chance.random() * 0.02)
        if chance.random() < 0.3:
            kill_feeds(dataset)
        for rank in ranks:
            rank.kill()
    epochs = len(received) // (STEPS * GLOBAL_BATCH) + 1
    whole = list(itertools.chain(*(epoch_order(COUNT, 7, epoch)[: STEPS * GLOBAL_BATCH] for epoch in range(epochs))))
    assert received == whole[: len(received)], f"shapes {shapes}"
    assert epochs > LIVES // 10
