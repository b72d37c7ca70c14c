"""`dsc report --job` against faults in real runs: `npm run test:waits`, nine minutes.

Each row is a run of one or more trainers (waits_trainer.py) with a fault in it. Trainers print how long each step
waited and worked; a replay without the waits for data says what they cost, also in ranks that waited for others.
"""

import json
import urllib.request

import pytest
from feed_waits_cluster import CLOSE, laid
from feed_waits_support import may_trace
from waits_run import (
    PREPARER,
    Fault,
    Nodes,
    Run,
    both_nodes_slow,
    kill_feed,
    node_stands_still,
    slow_disk,
    slow_store,
    store_stands_still,
)

FAULTS = {
    "nothing, a slow step": Fault({"step": 0.3, "epochs": 2}),
    "nothing, a slow copy to the device": Fault({"copy": 0.2, "workers": 2, "epochs": 2}),
    "nothing, pauses between epochs": Fault({"pause": 1.0}),
    "nothing, validation of another dataset": Fault({"step": 0.1, "validation": "staged-2", "epochs": 3}),
    "nothing, one rank computes slowly": Fault(
        {"step": {"1": 0.2}, "exchanges": True, "epochs": 8, "batch": 4}, world=4
    ),
    "nothing, one rank validates alone": Fault({"step": 0.1, "pause": 1.0, "exchanges": True, "batch": 4}, world=4),
    "queue of dsc run": Fault({"target": "wrapped", "step": 0.3, "epochs": 2}, {"queue": "set"}, wrapped=True),
    "queue of two datasets": Fault({"target": "prepared", "epochs": 8}, {"queue": "set"}, prepares=2),
    "store stands still": Fault(
        {"target": "unused", "epochs": 2, "batch": 2, "workers": 2}, {"feed": "store"}, during=store_stands_still
    ),
    "store slow, two plain workers": Fault(
        {"target": "unused", "way": "plain", "workers": 2, "epochs": 2}, {"feed": "store"}, during=slow_store
    ),
    "store slow, read ahead": Fault(
        {"target": "unused", "ahead": 2, "epochs": 2}, {"feed": "store"}, during=slow_store
    ),
    "one node stands still once": Fault(
        {"target": "stripes", "workers": 2, "epochs": 2, "batch": 2}, {"feed": "node-1"}, during=node_stands_still
    ),
    "two nodes slow, one more": Fault(
        {"target": "stripes", "epochs": 2, "way": "plain"}, {"feed": "node-0"}, during=both_nodes_slow
    ),
    "disk slow, two workers": Fault(
        {"options": {"feed_options": ["--no-map", "--no-next"], "k": 4}, "workers": 2, "epochs": 2},
        {"feed": "disk"},
        during=slow_disk,
    ),
    "disk slow, samples by id": Fault({"way": "map", "epochs": 2}, {"feed": "disk"}, during=slow_disk),
    "transform slow now and then": Fault({"transform": [0.9, 32], "workers": 2}, {"transform": ""}),
    "transform computes": Fault({"transform": [0.01, 1, 0, True]}, {"transform": ""}),
    "collate slow in plain workers": Fault({"collate": 0.25, "way": "plain", "workers": 2}, {"transform": ""}),
    "transform and store slow": Fault(
        {"target": "unused", "transform": 0.01, "epochs": 3}, {"feed": "store", "transform": ""}, during=slow_store
    ),
    "validation slow": Fault({"validation": "staged-2", "validate": 0.02, "epochs": 3}, {"transform": ""}),
    "one rank slow now and then": Fault(
        {"transform": {"3": [0.5, 16]}, "step": 0.1, "exchanges": True, "batch": 4},
        {"transform": "of rank 3"},
        world=4,
    ),
    "ranks slow in turn": Fault(
        {"transform": {str(rank): [0.2, 16, 4 * rank] for rank in range(4)}, "exchanges": True, "batch": 4},
        {"transform": "transform"},
        world=4,
    ),
    "ranks apart, one slow": Fault(
        {"transform": {"1": 0.02}, "epochs": 6, "batch": 4}, {"transform": "transform"}, world=2
    ),
    "one rank of two nodes slow": Fault(
        {"transform": {"3": 0.04}, "step": 0.1, "exchanges": True, "batch": 4},
        {"transform": "of rank 3"},
        world=4,
        nodes=2,
    ),
    "store slow for one of two nodes": Fault(
        {"target": "unused", "exchanges": True, "epochs": 4, "batch": 4},
        {"feed": "store"},
        during=slow_store,
        world=2,
        nodes=2,
    ),
    "one of two nodes stages longer": Fault(
        {"target": "prepared", "exchanges": True, "epochs": 4, "batch": 4},
        {"queue": "set"},
        world=2,
        nodes=2,
        late=True,
    ),
    "one of two nodes stages longer, then both begin": Fault(
        {"target": "prepared", "exchanges": True, "epochs": 4, "batch": 4},
        {"queue": "set"},
        world=2,
        nodes=2,
        prepares=1,
    ),
    "transform slow, trainer killed": Fault({"transform": 0.02, "epochs": 99}, {"transform": ""}, kill_at=15.0),
    "feed killed": Fault({"transform": 0.02, "epochs": 8}, {"feed": "start", "transform": ""}, during=kill_feed),
}


@pytest.fixture(name="cluster", scope="module")
def make_nodes(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        cluster = Nodes(tmp_path_factory.mktemp("faults"), monkeypatch)
        yield cluster
        cluster.close()


@pytest.mark.parametrize("name", FAULTS)
def test_reports_the_truth(cluster, name):
    fault = FAULTS[name]
    if fault.during is slow_disk and not may_trace():
        pytest.skip("strace may not hold up other processes")
    run = Run(cluster, fault, str(6000 + list(FAULTS).index(name)))
    run.prepare()
    run.start()
    run.train()
    jobs = run.report()
    cluster.reported |= {job["task"] for job in jobs} | {f"slurm:{PREPARER}"}
    waited, worked, took, blur = run.truth()
    queue = [sum(each) for each in zip((0, 0), *run.queued, strict=True)]
    total = took + sum(queue) / 2
    blur += (queue[1] - queue[0]) / 2
    queue = [sum(each) for each in zip(queue, run.held, strict=True)]
    print(name, f"waited {waited:.2f} worked {worked:.2f} queue {queue} took {took:.2f} blur {blur:.2f}", jobs)
    (job,) = [each for each in jobs if each["task"] != f"slurm:{PREPARER}"]
    assert job["gpus"] == fault.world
    if not (fault.kill_at or fault.during is kill_feed):
        assert abs(job["gpuMs"] / 1000 - total) < 0.05 * total + blur
    least = {"queue": queue[0], "transform": 0.0, "feed": 0.0}
    if "feed" in fault.culprits and "transform" in fault.culprits:
        least |= {"transform": worked, "feed": waited - worked}
    else:
        least[next(iter(fault.culprits.keys() - {"queue"}), "feed")] = waited
    for place, seconds in least.items():
        most = queue[1] if place == "queue" else seconds
        points = 100 * laid(job, place, "") / job["gpuMs"]
        assert 100 * (seconds - blur) / total - CLOSE < points < 100 * (most + blur) / total + CLOSE, place
    for place, culprit in fault.culprits.items():
        largest = max((each for each in job["waits"] if each["place"] == place), key=lambda each: each["gpuMs"])
        assert run.called(culprit) in largest["culprit"]


def test_the_page_says_what_the_command_says(cluster):
    """Of all jobs above, to the word: those whose truth is known."""
    if not cluster.reported:
        pytest.skip("no job has run")
    said = dict(line.split(": ", 1) for line in cluster.dsc("report", "--job").splitlines())
    found = {job["task"]: job for job in json.loads(cluster.dsc("report", "--job", "--json"))["jobs"]}
    with cluster.serve_page() as page, urllib.request.urlopen(f"{page}/v1/page/report") as answer:
        shown = json.load(answer)["jobs"]
    over = [job for job in shown if job["task"] != f"slurm:{PREPARER}"]  # which still holds its datasets
    assert over == [{**found[job["task"]], "said": said[job["task"]]} for job in over]
    assert len(shown) == min(len(found), 20)
