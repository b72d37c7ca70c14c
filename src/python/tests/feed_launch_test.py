"""How a trainer starts its feed, and what it is told where that takes long or cannot be."""

import json
import math
import os
import subprocess
import threading

import numpy
import pytest
from feed_support import COUNT, in_a_fork

import dsc
from dsc.feed import launch, wire
from dsc.frames import Wire


def test_a_feed_that_takes_long_is_told_of_and_waited_for(dataset, monkeypatch):
    script = dataset.parent / "dsc"
    script.write_text(f'#!/bin/sh\nsleep 2\nexec {os.environ["DSC_BIN"]} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("DSC_BIN", str(script))
    monkeypatch.setattr(launch, "_PATIENCE_SECONDS", 1)
    with pytest.warns(UserWarning, match="is not there after 1 s"):
        assert len(list(dsc.FeedDataset(dataset, batch_size=COUNT))) == 1


@pytest.mark.parametrize("program", ["/nonexistent/dsc", "/dev/null"])
def test_a_program_that_cannot_be_run_is_named(dataset, monkeypatch, program):
    monkeypatch.setenv("DSC_BIN", program)
    with pytest.raises(dsc.FeedError, match=f"{program}.*cannot be run"):
        next(iter(dsc.FeedDataset(dataset, batch_size=2)))


@pytest.mark.skipif(os.getuid() != 0, reason="root may make folders everywhere")
def test_a_runtime_folder_that_this_user_cannot_have_is_not_used(monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/64013")

    def as_user():
        os.setgid(64_013)
        os.setuid(64_013)
        return launch.runtime_folder()

    assert in_a_fork(as_user) == "'/tmp/dsc-64013'"
    os.rmdir("/tmp/dsc-64013")


@pytest.mark.parametrize("timeout", [math.inf, 1e12])
def test_a_feed_may_be_waited_for_without_end(dataset, timeout):
    assert len(list(dsc.FeedDataset(dataset, batch_size=COUNT, timeout=timeout))) == 1


def test_the_numbers_of_a_mix_may_be_numpys(dataset):
    assert len(list(dsc.FeedDataset(mix={str(dataset): numpy.float64(1)}, batch_size=COUNT))) == 1


def test_feeds_that_python_starts_are_found_and_leave_no_lock_files(dataset):
    other = dataset.parent / "other"
    other.mkdir()
    (other / "a.txt").write_text("x")
    feeds = [dsc.FeedDataset(folder, batch_size=1) for folder in (dataset, other)]
    for feed in feeds:
        next(iter(feed))
    names = os.listdir(launch.runtime_folder())
    assert [name for name in names if name.endswith(".lock")] == []
    said = subprocess.run([*launch.dsc_command(), "feed", "status", "--json"], stdout=subprocess.PIPE, check=True)
    found = json.loads(said.stdout)
    assert sorted(os.path.basename(feed["socket"]) for feed in found["feeds"]) == sorted(
        name for name in names if name.endswith(".sock")
    )
    assert len(found["feeds"]) == 2 and found["metrics"] == found["feeds"][0]["metrics"] != {}


def test_a_lock_that_is_removed_while_it_is_awaited_is_taken_anew(tmp_path):
    path, inside, most = str(tmp_path / "lock"), [], []

    def take():
        for _ in range(50):
            with launch._locked(path):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 200 and not os.path.exists(path)


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x1c"])
def test_a_failure_keeps_its_code_whatever_sign_is_in_its_message(dataset, monkeypatch, separator):
    script = dataset.parent / "dsc"
    said = json.dumps({"error": {"code": "SOURCE_EMPTY", "message": f"a{separator}b"}}, ensure_ascii=separator < " ")
    script.write_text(f"#!/bin/sh\ncat >&2 <<'.'\n{said}\n.\nexit 17\n", encoding="utf8")
    script.chmod(0o755)
    monkeypatch.setenv("DSC_BIN", str(script))
    with pytest.raises(dsc.FeedError, match=f"a{separator}b") as raised:
        next(iter(dsc.FeedDataset(dataset, batch_size=2)))
    assert raised.value.code == "SOURCE_EMPTY"


def test_a_feed_of_another_version_is_refused_by_name(dataset, monkeypatch):
    next(iter(dsc.FeedDataset(dataset, batch_size=2)))
    monkeypatch.setattr(wire, "WIRE", Wire(b"DSCS", 8))
    with pytest.raises(dsc.FeedError, match="speaks DSCS 9, this is DSCS 8") as raised:
        next(iter(dsc.FeedDataset(dataset, batch_size=2)))
    assert raised.value.code == "FEED_PROTOCOL"
