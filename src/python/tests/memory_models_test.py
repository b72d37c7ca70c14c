"""Models unlike stacks of layers: sparse ones are planned, sharded and functional ones refused in one sentence."""

import json
import sys

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from memory_tools import ROOT, make_plan, one_thread, run_dsc, under  # noqa: E402, F401
from torch import nn  # noqa: E402

from dsc.memory import AccountingDevice, Offload, PlanError, profile  # noqa: E402


class Words(nn.Module):
    """An embedding whose gradient is sparse, and layers."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(500, 64, sparse=True)
        self.body = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(64, 64), nn.Tanh())])

    def forward(self, words):
        return self.body(self.embedding(words))


class Graph(nn.Module):
    """Layers between products with a sparse matrix, which autograd saves."""

    def __init__(self, layout):
        super().__init__()
        ring = torch.eye(256) + torch.eye(256).roll(1, 0)
        self.neighbours = ring.to_sparse() if layout == torch.sparse_coo else ring.to_sparse_csr()
        self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(torch.sparse.mm(self.neighbours, layer(x)))
        return x


class Functional(nn.Module):
    """Computes with its parameters and no layers."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(64, 64) / 8) for _ in range(4)])

    def forward(self, x):
        for weight in self.weights:
            x = torch.tanh(x @ weight)
        return x


MODELS = {
    "embedding": (Words, lambda: torch.randint(0, 500, (256,))),
    "coo": (lambda: Graph(torch.sparse_coo), lambda: torch.randn(256, 64)),
    "csr": (lambda: Graph(torch.sparse_csr), lambda: torch.randn(256, 64)),
}


def fresh(name):
    torch.manual_seed(0)
    make, inputs = MODELS[name]
    return make(), inputs()


def train(name, steps, executor_of=None):
    """Gradients of each step, dense, and the values at the end."""
    model, inputs = fresh(name)
    executor = executor_of and executor_of(model)
    parameters = list(model.parameters())
    if executor is not None and executor.runnable.moves_parameters:
        parameters = executor.host_parameters()
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    gradients = []
    with AccountingDevice() as device:
        device.hold(model, inputs)
        for _ in range(steps):
            with under(executor):
                loss = model(inputs).square().mean()
            loss.backward()
            del loss
            if executor is not None:
                executor.end_step()
            with device.uncounted():
                gradients.append([p.grad.to_dense().clone() for p in parameters])
                optimizer.step()
                optimizer.zero_grad()
    values = [p.detach().clone() for p in parameters]
    if executor is not None:
        assert executor.counts["planMisses"] == 0, executor.last_miss
        executor.close()
    return gradients, values, device.peak_bytes


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
@pytest.mark.parametrize("name, flags", [(n, ()) for n in MODELS] + [("embedding", ("--move", "params,grads"))])
def test_sparse_models_train_under_a_plan_as_without_one(name, flags, tmp_path):
    model, inputs = fresh(name)
    plan, _, _ = make_plan(profile(model, inputs, loss=lambda y: y.square().mean()), str(tmp_path), "85%", *flags)
    assert plan["moves"]
    assert all(move["name"] != "embedding.weight" for move in plan["moves"])
    plain, planned = train(name, 3), train(name, 3, lambda model: Offload(plan, model=model))
    for one, other in zip(plain[0] + [plain[1]], planned[0] + [planned[1]]):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert planned[2] <= plan["predicted"]["peakBytes"] < plain[2]


@pytest.fixture
def alone(tmp_path):
    """A process group of this process only."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def _plan_that_moves(*kinds):
    moves = [{"kind": kind, "ticks": {}, "name": "0.weight"} for kind in kinds]
    arenas = {"host": {"bytes": 0}, "reload": {"bytes": 0}}
    lists = {"packSignatures": [], "packLayers": [], "reuse": [], "recompute": []}
    return {"v": 2, "kind": "dsc.mem.plan", "moves": moves, "arenas": arenas, **lists}


def test_sharded_models_are_refused_by_name(alone):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Replicate, distribute_module

    mesh = init_device_mesh("cpu", (1,))
    sharded = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    fully_shard(sharded[0], mesh=mesh)
    with pytest.raises(PlanError, match=r"^0 is sharded by fully_shard, "):
        profile(sharded, torch.randn(4, 8))
    with pytest.raises(PlanError, match=r"^0 is sharded by fully_shard, "):
        Offload(_plan_that_moves("param"), model=sharded)
    Offload(_plan_that_moves(), model=sharded).close()
    parallel = distribute_module(nn.Sequential(nn.Linear(8, 8)), mesh)
    assert isinstance(parallel[0].weight.placements[0], Replicate)
    with pytest.raises(PlanError, match=r"^parameter 0.weight is a DTensor, "):
        profile(parallel, torch.randn(4, 8))


FUNCTIONAL = """
import torch
class Functional(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 8))
    def forward(self, x):
        return torch.tanh(torch.tanh(x @ self.weight) @ self.weight)
model = Functional()
for _ in range(12):
    model(torch.randn(4, 8)).sum().backward()
"""


def test_a_model_without_layers_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(PlanError, match="^Functional computes with functions alone and calls no layer: "):
        profile(Functional(), torch.randn(4, 64))
    script, out = tmp_path / "train.py", tmp_path / "out.json"
    script.write_text(FUNCTIONAL)
    done = run_dsc("memory", "profile", "--json", "--out", str(out), "--", sys.executable, str(script), check=False)
    assert done.returncode == 2
    assert json.loads(done.stderr)["error"]["message"].startswith("Functional computes with functions alone ")
    assert not out.exists()
