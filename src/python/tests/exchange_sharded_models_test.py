"""FSDP2 with scaled halves on public models: gradients of every layer beside those of fp32."""

import copy

import pytest

torch = pytest.importorskip("torch")
for library in ("timm", "transformers"):
    pytest.importorskip(library)

from exchange_workers import run_ranks  # noqa: E402
from memory_models import MODELS, fresh_case  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402

from dsc.exchange import use_scaled_half  # noqa: E402

NAMES = ["DeiT", "GPT-2", "Llama", "T5"]
STEPS = 2


def loss_of(model, name, step, rank):
    torch.manual_seed(100 * step + rank)  # for inputs and dropout
    return MODELS[name].loss(model(**MODELS[name].inputs()))


def shard(model, mesh):
    """Every repeated block is a unit, and what is left another one."""
    lists = (torch.nn.ModuleList, torch.nn.Sequential)
    for blocks in [module for name, module in model.named_modules() if isinstance(module, lists)]:
        if len(blocks) > 1 and len({type(block) for block in blocks}) == 1:
            for block in blocks:
                fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def layer_errors(model, plain):
    """The relative error of each layer: of all parameters that one module has itself."""
    others = dict(plain.named_parameters())
    layers = {}
    for name, parameter in model.named_parameters():
        if others[name].grad is not None:
            found, expected = parameter.grad.full_tensor().flatten(), others[name].grad.flatten()
            layers.setdefault(name.rpartition(".")[0], []).append((found, expected))
    errors = {}
    for name, pairs in layers.items():
        found, expected = (torch.cat(each) for each in zip(*pairs))
        errors[name] = ((found - expected).norm() / expected.norm()).item()
    return errors


def _worst_layers(rank, ranks, shards):
    mesh = init_device_mesh("cpu", (ranks // shards, shards), mesh_dim_names=("replicate", "shard"))
    worst = {}
    for name in NAMES:
        plain, _ = fresh_case(name)
        model = copy.deepcopy(plain)
        shard(model, mesh["shard"])
        units = use_scaled_half(model, replicas=mesh.get_group("replicate") if shards < ranks else None)
        assert units > 2
        for step in range(STEPS):
            model.zero_grad()
            plain.zero_grad()
            loss_of(model, name, step, rank).backward()
            for each in range(ranks):
                (loss_of(plain, name, step, each) / ranks).backward()
            layer, error = max(layer_errors(model, plain).items(), key=lambda pair: pair[1])
            if error > worst.get(name, ("", 0.0))[1]:
                worst[name] = (layer, error)
    return worst


@pytest.mark.parametrize(("ranks", "shards"), [(2, 2), (4, 4), (4, 2)])
def test_gradients_of_public_models_are_within_half_a_thousandth_of_fp32s_in_every_layer(ranks, shards):
    for worst in run_ranks(ranks, _worst_layers, ranks, shards):
        assert sorted(worst) == NAMES
        assert all(0 < error < 5e-4 for _, error in worst.values()), worst
