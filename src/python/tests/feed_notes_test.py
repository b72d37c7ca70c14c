"""What a feed tells its clients beside samples: warnings of the process that reads."""

import json
import os
import shlex
import subprocess
import warnings

import pytest
from feed_support import COUNT

import dsc


@pytest.fixture
def start(dataset):
    """Starts `dsc feed ...`; returns the process and what it says of itself."""
    started = []

    def start(*words):
        command = [*shlex.split(os.environ["DSC_BIN"]), "feed", *words, "--json"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=dataset.parent)
        started.append(process)
        text = b""
        while True:
            text += process.stdout.readline()
            try:
                return process, json.loads(text)
            except ValueError:
                assert process.poll() is None, text

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def said(told):
    """The feed's words among the warnings."""
    return [str(each.message) for each in told if str(each.message).startswith("dsc:")]


def test_a_lost_storage_node_is_one_warning(dataset, start, monkeypatch):
    nodes = [start("storage", str(dataset), "--listen", "127.0.0.1:0") for _ in range(2)]
    addresses = ",".join(f"127.0.0.1:{said['port']}" for _, said in nodes)
    socket = str(dataset.parent / "s")
    start("serve", "--from", addresses, "--socket", socket, "--k", "4", "--memory", "256KiB", "--no-next")
    monkeypatch.setenv("DSC_FEED_SOCKET", socket)
    loader = dsc.FeedLoader(dsc.FeedDataset(dataset, batch_size=8, depth=1))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert len(list(loader)) == len(loader)
        assert said(told) == []  # what earlier tests left to be collected may warn here, too
        nodes[1][0].kill()
        nodes[1][0].wait()
        for _ in range(2):
            assert len(list(loader)) == len(loader)
    assert [text.split(" (")[0] for text in said(told)] == ["dsc: the feed has lost storage node 1"]


def test_what_is_left_out_of_a_folder_is_one_warning(dataset):
    (dataset / "gone.txt").symlink_to(dataset / "nowhere")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        loader = dsc.FeedLoader(dsc.FeedDataset(dataset, batch_size=7))
        for _ in range(2):
            assert sum(len(batch) for batch in loader) == COUNT
    assert said(told) == ["dsc: 1 not fed: gone.txt (a link to nothing)"]
