"""The example that trains: two ranks over gloo, killed in mid-epoch and resumed."""

import os
import random
import signal
import struct
import subprocess
import sys
import time
import zlib

import pytest
from feed_support import ROOT, free_port

EXAMPLE = ROOT / "scripts" / "examples" / "train-digits.py"
STOP = 27  # steps: 18 are an epoch, and there is a checkpoint every 5
STOPPING = f"""
import itertools, runpy, signal, sys
from torch.optim.optimizer import register_optimizer_step_post_hook

steps = itertools.count(1)
register_optimizer_step_post_hook(lambda *_: next(steps) > {STOP} and signal.pause())
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def write_png(path, rows):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b""))


@pytest.fixture
def images(tmp_path):
    """Ten classes that a linear model can tell apart: a bright row each, and noise."""
    chance = random.Random(3)
    folder = tmp_path / "images"
    for label in range(10):
        (folder / str(label)).mkdir(parents=True)
        for i in range(60):
            rows = [[chance.randrange(90) + (150 if y == label else 0) for _ in range(12)] for y in range(12)]
            write_png(folder / str(label) / f"{i:04}.png", rows)
    (folder / "labels.csv").write_text("not an image")
    return folder


def launch(images, out, port, is_stopping=False):
    """Two ranks. Stopping ones train STOP steps, and wait to be killed."""
    arguments = [
        *(["-c", STOPPING] if is_stopping else []),
        str(EXAMPLE),
        str(images),
        "--epochs",
        "3",
        "--batch",
        "16",
        "--checkpoint",
        str(out / "run.pt"),
        "--log",
        str(out / "ids"),
    ]
    processes = []
    for rank in range(2):
        environment = {
            **os.environ,
            "RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "PYTHONPATH": str(ROOT / "src" / "python"),
        }
        processes.append(
            subprocess.Popen(
                [sys.executable, *arguments],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    return processes


def finish(processes):
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], "\n".join(outputs)
    return outputs[0]


def sequence(out):
    """Step -> ids of all ranks. A step that was made again after a resume must have the same ids."""
    steps = {}
    for rank in range(2):
        for line in (out / f"ids.{rank}").read_text().splitlines():
            step, *ids = map(int, line.split())
            assert steps.setdefault((step, rank), ids) == ids, f"step {step} of rank {rank} changed"
    return [steps[key] for key in sorted(steps)]


def test_a_killed_training_run_resumes_with_the_same_samples_and_ends_with_the_same_weights(images, tmp_path, dataset):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    expected = finish(launch(images, whole, free_port()))
    processes = launch(images, killed, free_port(), is_stopping=True)
    logs = [killed / "ids.0", killed / "ids.1"]
    while not all(log.exists() and log.read_text().count("\n") == STOP for log in logs):
        assert all(process.poll() is None for process in processes), "it ended before it could be killed"
        time.sleep(0.01)
    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    actual = finish(launch(images, killed, free_port()))
    assert "resuming at step 25," in actual
    assert sequence(killed) == sequence(whole)
    assert actual.splitlines()[-1] == expected.splitlines()[-1]
    accuracy = float(expected.split("epoch 2: ")[1].split(" %")[0])
    assert accuracy > 90
