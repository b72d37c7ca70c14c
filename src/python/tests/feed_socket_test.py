"""A trainer talks to no feed but its own user's."""

import os
import shutil
import socket
import threading
import uuid

import pytest
from feed_support import COUNT, feeds, in_a_fork

import dsc
from dsc import FeedDataset  # not lazily by a user who may not read the packages
from dsc.feed.socket_folder import connect_to_feed

VICTIM, ATTACKER = 64_011, 64_012

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can run as several users")


def as_user(user, work):
    """What `work` returns, or the error that it raises, in a process of that user."""

    def become():
        os.setgid(user)
        os.setuid(user)
        return work()

    return in_a_fork(become)


@pytest.fixture
def shared():
    """A folder that all may write in, as /tmp."""
    folder = f"/tmp/dsc-test-{uuid.uuid4().hex[:8]}"
    os.mkdir(folder)
    os.chmod(folder, 0o1777)
    yield folder
    shutil.rmtree(folder)


def listen(path, owner=ATTACKER):
    """A listener of this process on a socket of that user."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    os.chmod(path, 0o600)
    os.chown(path, owner, owner)
    server.listen()
    return server


@pytest.mark.parametrize("mode", [0o777, 0o700])
def test_the_default_folder_is_refused_where_another_user_has_made_it(dataset, monkeypatch, mode):
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    folder = f"/tmp/dsc-{VICTIM}"
    assert as_user(ATTACKER, lambda: (os.mkdir(folder), os.chmod(folder, mode))) == "(None, None)"
    try:
        said = as_user(VICTIM, lambda: FeedDataset(str(dataset), batch_size=4))
        assert f"{folder} belongs to user {ATTACKER}, so another user may answer in the feed's place" in said
        assert os.listdir(folder) == []
    finally:
        shutil.rmtree(folder)
    assert feeds(dataset) == []


def test_the_default_folder_is_refused_where_others_may_write_or_look(dataset, monkeypatch, shared):
    monkeypatch.setenv("XDG_RUNTIME_DIR", shared)
    os.mkdir(f"{shared}/dsc")
    os.chmod(f"{shared}/dsc", 0o770)
    with pytest.raises(dsc.FeedError, match="dsc has mode 0770, so another user may answer") as caught:
        dsc.FeedDataset(dataset, batch_size=4)
    assert caught.value.code == "FEED_PROTOCOL"


def test_a_socket_of_another_user_is_refused_before_anything_is_sent(dataset, monkeypatch, shared):
    path = f"{shared}/feed.sock"
    with listen(path) as server:
        server.setblocking(False)
        monkeypatch.setenv("DSC_FEED_SOCKET", path)
        with pytest.raises(dsc.FeedError, match=f"feed.sock belongs to user {ATTACKER}"):
            next(iter(dsc.FeedDataset(dataset, batch_size=4, timeout=5)))
        os.chown(path, 0, 0)
        os.chmod(path, 0o666)
        with pytest.raises(dsc.FeedError, match="feed.sock has mode 0666"):
            next(iter(dsc.FeedDataset(dataset, batch_size=4, timeout=5)))
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_listener_of_another_user_behind_the_users_own_name_is_refused(shared):
    path = f"{shared}/feed.sock"
    with listen(path, owner=VICTIM) as server:
        accepting = threading.Thread(target=server.accept)
        accepting.start()
        said = as_user(VICTIM, lambda: connect_to_feed(path, 10))
        accepting.join()
    assert f"{path} is answered by user 0" in said


def test_what_is_no_socket_is_refused(shared):
    path = f"{shared}/feed.sock"
    open(path, "w").close()
    with pytest.raises(dsc.FeedError, match="is no socket"):
        connect_to_feed(path, 10)


def test_a_feed_in_a_folder_of_its_own_user_is_used(dataset):
    data = dsc.FeedDataset(dataset, batch_size=1)
    assert data.info["n"] == COUNT
    data.close()
