"""The PyTorch client of the central node: sync equals one process, prefetch per layer, restarts, refusals."""

import copy
import os
import signal
import subprocess
import threading
import time

import pytest

torch = pytest.importorskip("torch")

from feed_support import free_port  # noqa: E402
from memory_tools import ROOT, node  # noqa: E402

from dsc.params import Mirror, MirrorError, ParameterClient, ParamsError  # noqa: E402
from dsc.params.half import encode_half  # noqa: E402


class Server:
    def __init__(self, *flags):
        self.port = free_port()
        self.flags = flags
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        command = [node(), os.path.join(ROOT, "bin", "dsc.js"), "params", "serve", *self.flags]
        self.process = subprocess.Popen(
            [*command, "--listen", f"127.0.0.1:{self.port}"], stdout=subprocess.PIPE, text=True
        )

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def serve():
    servers = []

    def start(*flags):
        servers.append(Server(*flags))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


def model_and_batch():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.Tanh(), torch.nn.Linear(30, 5))
    return model, torch.randn(8, 20), torch.randn(8, 5)


def loss_of(model, x, y):
    return (model(x) - y).square().mean()


def train_alone(steps, lr=0.1, momentum=0.9):
    model, x, y = model_and_batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def train_rank(url, rank, steps, finals, on_step=None, made=None, push_type="f32"):
    model, x, y = made  # in the main thread: torch has one random generator for all of them
    half = slice(4 * rank, 4 * rank + 4)
    client = ParameterClient(model, url, rank, push_type=push_type)
    while True:
        step = client.begin_step()
        if step >= steps:
            break
        for parameter in model.parameters():
            parameter.grad = None
        loss_of(model, x[half], y[half]).backward()
        client.push()
        if on_step:
            on_step(step)
    client.load()
    finals[rank] = [p.detach().clone() for p in model.parameters()]
    client.close()


def in_threads(*calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_two_sync_workers_equal_one_process_on_the_whole_batch(serve):
    server = serve("--mode", "sync", "--workers", "2", "--lr", "0.1", "--momentum", "0.9")
    finals = {}
    made = [model_and_batch(), model_and_batch()]
    in_threads(*(lambda r=rank: train_rank(server.url, r, 20, finals, made=made[r]) for rank in (0, 1)))
    for one, other, alone in zip(finals[0], finals[1], train_alone(20)):
        assert torch.equal(one, other)
        assert torch.allclose(one, alone, rtol=1e-5, atol=1e-6)


def test_the_centre_takes_sparse_gradients(serve):
    server = serve("--mode", "sync", "--workers", "1", "--lr", "0.5")
    torch.manual_seed(0)
    model = torch.nn.Embedding(20, 4, sparse=True)
    client = ParameterClient(model, server.url, 0)
    client.begin_step()
    model(torch.tensor([3, 3, 7])).square().sum().backward()
    expected = model.weight.detach() - 0.5 * model.weight.grad.to_dense()
    assert client.push() == "applied"
    client.begin_step()
    client.load()
    client.close()
    assert torch.equal(model.weight.detach(), expected)


def test_gradients_as_halves_train_like_float32_within_their_rounding(serve):
    server = serve("--mode", "sync", "--workers", "2", "--lr", "0.1", "--momentum", "0.9")
    finals = {}
    models = [model_and_batch() for _ in range(2)]
    in_threads(*[lambda r=r: train_rank(server.url, r, 12, finals, made=models[r], push_type="f16") for r in range(2)])
    alone = train_alone(12)
    for one, other, expected in zip(finals[0], finals[1], alone):
        assert torch.equal(one, other)
        assert not torch.equal(one, expected), "nothing was rounded: these were not halves"
        assert torch.allclose(one, expected, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_halves_keep_what_is_not_finite_and_scale_each_parameter_by_itself(bad):
    gradient = torch.tensor([1e-6, -3e-6, 0.0, 0.0, bad, 1.0, 0.0, 0.0])
    exponents, halves = encode_half(gradient, [(0, 2), (4, 2), (6, 0)])
    assert 2**14 <= halves[:2].abs().max() < 2**15
    assert torch.allclose(halves[:2].float() * 2.0 ** -exponents[0], gradient[:2], rtol=2**-11, atol=0)
    assert exponents[1:] == [0, 0] and not torch.isfinite(halves[4])


def test_a_server_that_is_killed_is_waited_for_and_goes_on(serve, tmp_path):
    flags = ("--mode", "sync", "--workers", "2", "--lr", "0.1", "--momentum", "0.9")
    server = serve(*flags, "--checkpoint", str(tmp_path))
    finals = {}

    def kill_now_and_then(step):
        if step in (5, 11):
            server.kill()
            server.start()

    made = [model_and_batch(), model_and_batch()]
    in_threads(
        lambda: train_rank(server.url, 0, 20, finals, kill_now_and_then, made[0]),
        lambda: train_rank(server.url, 1, 20, finals, made=made[1]),
    )
    for one, alone in zip(finals[0], train_alone(20)):
        assert torch.allclose(one, alone, rtol=1e-5, atol=1e-6)


def test_each_layer_waits_for_its_own_parameters_of_the_step(serve):
    server = serve("--mode", "sync", "--workers", "1", "--lr", "0.5")
    model, x, y = model_and_batch()
    client = ParameterClient(model, server.url, 0)
    client.begin_step()
    loss_of(model, x, y).backward()
    expected = [p.detach() - 0.5 * p.grad for p in model.parameters()]
    assert client.push() == "applied"
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float("nan"))  # only the prefetch can make this forward right
    client.begin_step()
    assert torch.isfinite(model(x)).all()
    for parameter, value in zip(model.parameters(), expected):
        assert torch.allclose(parameter, value, rtol=1e-6, atol=1e-7)
    client.close()


def test_a_gradient_with_a_nan_is_refused_by_name(serve):
    server = serve("--mode", "async", "--workers", "1")
    model, x, y = model_and_batch()
    client = ParameterClient(model, server.url, 0)
    client.begin_step()
    loss_of(model, x, y).backward()
    model[2].bias.grad[3] = float("nan")
    with pytest.raises(ParamsError, match=r"the gradient of 2\.bias is not finite"):
        client.push()
    model[2].bias.grad[3] = 0.0
    assert client.push() == "applied"
    assert client.status()["version"] == 1
    client.close()


def test_an_async_worker_that_starts_again_goes_on_after_its_last_step(serve):
    server = serve("--mode", "async", "--workers", "1")
    for life in range(3):
        model, x, y = model_and_batch()
        client = ParameterClient(model, server.url, 0)
        assert client.begin_step() == 2 * life
        for _ in range(2):
            loss_of(model, x, y).backward()
            assert client.push() == "applied"
            client.begin_step()
        client.close()


def test_a_host_that_is_too_small_is_refused_with_both_numbers():
    with pytest.raises(MirrorError, match="needs 8000 bytes of host memory, 7999 are permitted"):
        Mirror(1000, free_bytes=7999)


def test_reads_during_pulls_are_never_torn():
    mirror = Mirror(512)
    stop = threading.Event()

    def write():
        version = 0
        while not stop.is_set():
            version += 1
            mirror.update(version, lambda half, v=version: half.fill_(v))

    writer = threading.Thread(target=write)
    writer.start()
    seen, last, began = torch.zeros(512), 0, time.monotonic()
    versions = set()
    while (took := time.monotonic() - began) < 2 or (len(versions) <= 50 and took < 60):
        version = mirror.read(lambda half: seen.copy_(half))
        assert (seen == version).all()
        assert version >= last
        last = version
        versions.add(version)
    stop.set()
    writer.join()
    assert len(versions) > 50


@pytest.mark.parametrize("is_loading", [True, False])
def test_a_step_that_a_pull_overtook_can_be_given_up(serve, is_loading):
    server = serve("--mode", "async", "--workers", "2")
    model, x, y = model_and_batch()
    client, other = (ParameterClient(make, server.url, rank) for rank, make in enumerate((model, copy.deepcopy(model))))
    client.begin_step()
    other.begin_step()
    loss_of(other.model, x, y).backward()
    assert other.push() == "applied"
    assert client.pull(at_least=1) == 1
    if is_loading:
        assert client.load() == 1
        other.pull(at_least=1)
        other.load()
        assert all(map(torch.equal, model.parameters(), other.model.parameters()))
    client.close()
    other.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "dsc-prefetch"]
