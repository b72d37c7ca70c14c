"""Whoever of worker, trainer and feed is killed: nothing is left, and the next run starts without cleaning up."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from feed_support import COUNT, ROOT

import dsc
from dsc.feed.launch import dsc_command
from dsc.feed.order import epoch_order

BATCH = 8
TRAINER = """
    import json, multiprocessing, sys, time
    import dsc
    data = dsc.FeedDataset("flowers", batch_size=8, seed=7, memory="64MiB", transform=lambda sample: sample.id)
    loader = dsc.FeedLoader(data, num_workers=2)
    batches = iter(loader)
    next(batches)
    workers = [worker.pid for worker in multiprocessing.active_children()]
    print(json.dumps({"feed": data.info["arena"]["path"].split("/")[2], "workers": workers}), flush=True)
    sys.stdin.readline()  # the rest of the pass is there yet, however long the test takes until it kills
    for batch in batches:
        time.sleep(0.3)
"""


@pytest.fixture
def flowers(dataset, tmp_path, monkeypatch):
    """The samples as a dataset of a record, which feeds stage and lease."""
    config = {
        "record": f"sqlite://{tmp_path}/record.db",
        "node": "node-a",
        "cache": {"root": f"{tmp_path}/cache-root"},
        "datasets": {"flowers": {"source": f"file://{dataset}/"}},
    }
    (tmp_path / "dsc.yaml").write_text(json.dumps(config))
    monkeypatch.setenv("DSC_CONFIG", str(tmp_path / "dsc.yaml"))


def run_dsc(*words):
    done = subprocess.run([*dsc_command(), *words, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_place_of_a_killed_trainer_goes_with_the_next_and_that_of_a_living_one_stays(dataset):
    code = "import sys, dsc; data = dsc.FeedDataset('x', batch_size=8); print(flush=True); sys.stdin.readline()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    killed, living = (subprocess.Popen([sys.executable, "-c", code], **pipes) for _ in range(2))
    for trainer in (killed, living):
        trainer.stdout.readline()
    killed.kill()
    killed.wait()
    folder = pathlib.Path(os.environ["XDG_RUNTIME_DIR"]) / "dsc"
    before = set(folder.glob("place-*"))
    data = dsc.FeedDataset("y", batch_size=8)
    left = set(folder.glob("place-*")) & before
    assert (len(before), len(left)) == (2, 1)
    living.communicate(b"\n")
    assert set(folder.glob("place-*")) & left == set()
    assert data.position.next() == (0, 0)


def wait_for(what, is_true, seconds):
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}"
        time.sleep(0.02)


def is_alive(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def holders_of_arenas(feed):
    """Processes that keep the arena of `feed` from being freed."""
    mark, held = f"dsc-feed-{feed}-", []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            if any(mark in link for link in [*links, pathlib.Path(f"/proc/{pid}/maps").read_text()]):
                held.append(pid)
        except OSError:
            continue
    return held


def names_in_shared_memory(*pids):
    """Of a feed (dsc-feed-<pid>-…) or of torch (torch_<pid>_…)."""
    return [
        name for name in os.listdir("/dev/shm") if any(f"{mark}{pid}{mark}" in name for pid in pids for mark in "-_")
    ]


@pytest.mark.parametrize("victims", [["worker"], ["trainer"], ["feed"], ["worker", "trainer", "feed"]], ids="+".join)
def test_sigkill_leaves_nothing_and_the_next_run_starts_as_if_nothing_had_been(flowers, victims):
    trainer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(TRAINER)],
        cwd=ROOT / "src" / "python",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    said = json.loads(trainer.stdout.readline() or trainer.stderr.read())
    feed, workers = int(said["feed"]), said["workers"]
    assert len(workers) == 2 and holders_of_arenas(feed)
    # While the copy came, who staged it had a lease beside the feed's.
    wait_for("the feed's own lease alone", lambda: len(run_dsc("leases")["leases"]) == 1, 60)
    trainer.stdin.write("\n")
    trainer.stdin.flush()
    killed = {"worker": workers, "trainer": [trainer.pid], "feed": [feed]}
    for victim in victims:
        for pid in killed[victim]:
            with contextlib.suppress(ProcessLookupError):  # the trainer ends its other worker soon
                os.kill(pid, signal.SIGKILL)
    if victims == ["worker"]:  # the trainer is told, and ends; before it does, torch waits 5 s for each of the dead
        assert "DataLoader worker (pid" in trainer.communicate(timeout=60)[1]
    elif victims == ["feed"]:
        assert "FeedGone" in trainer.communicate(timeout=60)[1]
    else:
        trainer.communicate(timeout=60)
    ended = [*workers, trainer.pid, *([feed] if "feed" in victims else [])]
    wait_for("the end of the processes", lambda: not any(map(is_alive, ended)), 60)
    # No wait is needed: the kernel has freed what a process held by the time it ends. A feed keeps running for the next
    # trainer.
    assert holders_of_arenas(feed) == ([] if "feed" in victims else [str(feed)])
    assert not names_in_shared_memory(feed, trainer.pid, *workers)
    again = dsc.FeedDataset("flowers", batch_size=BATCH, seed=7, memory="64MiB")
    assert [sample.id for batch in dsc.FeedLoader(again) for sample in batch] == epoch_order(COUNT, 7, 0)[
        : COUNT // BATCH * BATCH
    ]
    next_feed = int(again.info["arena"]["path"].split("/")[2])
    os.kill(next_feed, signal.SIGTERM)
    wait_for("the end of the next feed", lambda: not is_alive(next_feed), 60)
    run_dsc("evict", "flowers", "--yes")  # no lease of the dead is in the way
