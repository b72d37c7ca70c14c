"""Every recipe of docs/recipes: two ranks, killed in mid-epoch, resumed; each sample is trained once an epoch."""

import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from feed_support import ROOT, free_port

Image = pytest.importorskip("PIL.Image")

RECIPES = ROOT / "docs" / "recipes"
RECORDER = ROOT / "src" / "python" / "tests" / "recipes_recorder.py"
WRITER = ROOT / "src" / "python" / "tests" / "recipes_formats.py"
WRITERS = {"parquet": "parquet-venv.sh", "mds": "formats-venv.sh", "litdata": "formats-venv.sh"}
OUTSIDE = dict(os.environ)  # where environments of other libraries are: tests have a cache of their own
SAMPLES, STEPS, EPOCHS = 192, 12, 3  # 16 samples of both ranks in a step
STOP = STEPS + 9  # in the second epoch, behind a checkpoint at step 20


@pytest.fixture
def images(dataset, monkeypatch):
    """Grey images in ten folders, each with its number in its first two pixels."""
    monkeypatch.delenv("DSC_FEED_JOB")  # as outside of tests: the job is told by its launcher
    folder = dataset.parent / "images"
    for number in range(SAMPLES):
        pixels = bytes((number >> 8, number & 255, *((number * i) & 255 for i in range(2, 32 * 32))))
        path = folder / str(number % 10) / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.frombytes("L", (32, 32), pixels).save(path)
    return folder


def in_format(name, images):
    """The same images as rows of a format, written by its own library; `files`: as they are."""
    if name == "files":
        return images
    python = sys.executable
    if name in WRITERS:
        script = ROOT / "scripts" / WRITERS[name]
        made = subprocess.run([script], env=OUTSIDE, stdout=subprocess.PIPE, text=True, check=True)
        python = f"{made.stdout.strip()}/bin/python"
    out = images.parent / name
    subprocess.run([python, str(WRITER), name, str(images), str(out)], check=True, stdout=subprocess.DEVNULL)
    return out


def words(recipe, images, out, how, epochs=EPOCHS):
    """What runs a recipe under the recorder, which writes into `out`/lives."""
    (out / "lives").mkdir(exist_ok=True)
    keeps = "--checkpoints" if "--checkpoints" in (RECIPES / recipe).read_text() else "--checkpoint"
    recorded = [str(RECORDER), str(out / "lives"), str(STOP), how, str(RECIPES / recipe)]
    rows = ["--rows"] if images.name != "images" else []
    return [*recorded, str(images), *rows, keeps, str(out / "saved"), "--epochs", str(epochs), "--save-every", "5"]


def start(command, log, **environment):
    inherited = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    own = {"PYTHONPATH": str(ROOT / "src" / "python"), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, *command], env={**inherited, **own, **environment}, stdout=log, stderr=log, cwd=log.name[:-4]
    )


def launch(command, out, world=2):
    """The ranks of a job, as torchrun starts them; their output goes to `out`.log."""
    out.mkdir(exist_ok=True)
    job = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    sizes = {"WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world)}
    with open(f"{out}.log", "w") as log:
        return [start(command, log, RANK=str(rank), LOCAL_RANK=str(rank), **job, **sizes) for rank in range(world)]


def said(out):
    return pathlib.Path(f"{out}.log").read_text()[-5000:]


def finish(processes, out):
    codes = [process.wait(timeout=600) for process in processes]
    assert set(codes) == {0}, said(out)


def steps_of(out, life):
    """Per rank, the steps that its life trained."""
    lives = [(out / "lives" / f"{life}.{rank}") for rank in range(2)]
    written = [path.read_text().rpartition("\n")[0] for path in lives if path.exists()]  # a line may be half there
    return [[json.loads(line) for line in text.splitlines()] for text in written]


def kill_behind_the_stop(processes, out):
    deadline = time.monotonic() + 600
    while [len(steps) for steps in steps_of(out, 0)] != [STOP, STOP]:
        assert all(process.poll() is None for process in processes), said(out)
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.wait()


def check(out):
    """That the second life went on in mid-epoch with the weights of a checkpoint, and trained all that was left."""
    orders = []
    for first, second in zip(steps_of(out, 0), steps_of(out, 1)):
        (at,) = [i for i, step in enumerate(first) if step["before"] == second[0]["before"]]
        assert STEPS < at < STOP
        assert first[at:] == second[: STOP - at]  # samples, and weights to the bit
        orders.append([step["samples"] for step in first[:at] + second])
    assert [len(order) for order in orders] == [EPOCHS * STEPS] * 2
    epochs = [
        [list(itertools.chain(*order[epoch * STEPS : (epoch + 1) * STEPS])) for order in orders]
        for epoch in range(EPOCHS)
    ]
    for ranks in epochs:
        assert sorted(itertools.chain(*ranks)) == list(range(SAMPLES))
    assert len({tuple(ranks[0]) for ranks in epochs}) == EPOCHS


@pytest.mark.parametrize(
    "name, form",
    [("stateful_dataloader", "jsonl"), ("accelerate", "files"), ("lightning", "mds"), ("trainer", "parquet")],
)
def test_a_killed_recipe_goes_on_and_trains_every_sample_once(name, form, images, tmp_path):
    pytest.importorskip({"trainer": "transformers", "stateful_dataloader": "torchdata"}.get(name, name))
    out = tmp_path / "run"
    out.mkdir()
    command = words(f"with_{name}.py", in_format(form, images), out, "wait")
    kill_behind_the_stop(launch(command, out), out)
    finish(launch(command, out), out)
    check(out)


def test_torchrun_starts_a_killed_job_again_which_trains_every_sample_once(images, tmp_path):
    # Torchrun's ranks share a store with those that they replace, where gloo finds addresses of the dead.
    own_store = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    # More restarts than one: other versions of torch may not know that variable, and refuse each other before any step.
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "3"]
    for attempt in range(3):
        out = tmp_path / f"run{attempt}"
        out.mkdir()
        with open(f"{out}.log", "w") as log:
            job = start([*torchrun, *words("with_torchrun.py", images, out, "kill")], log, **own_store)
        if begins_again(job, out):
            break
        job.terminate()  # and with it the ranks
        job.wait(timeout=60)
    finish([job], out)
    check(out)


def begins_again(job, out):
    """Waits for a step after the restart. False: gloo's ranks wait for or refuse each other in `init_process_group`."""
    deadline = time.monotonic() + 240
    while job.poll() is None and not steps_of(out, 1) and time.monotonic() < deadline:
        time.sleep(0.1)
    return steps_of(out, 1) != []


@pytest.mark.parametrize("form", ["tar", "webdataset", "csv", "litdata"])
def test_a_recipe_trains_every_sample_of_other_formats_once(form, images, tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    command = words("with_torchrun.py", in_format(form, images), out, "wait", epochs=1)
    finish(launch(command, out, world=1), out)
    (steps,) = steps_of(out, 0)
    assert sorted(itertools.chain(*(step["samples"] for step in steps))) == list(range(SAMPLES))


def test_every_recipe_is_on_the_page_and_is_run():
    page = (RECIPES / "README.md").read_text()
    recipes = sorted(path.name for path in RECIPES.glob("*.py"))
    assert len(recipes) == 5
    assert [name for name in recipes if f"]({name})" not in page] == []
