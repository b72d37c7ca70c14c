import json
import subprocess
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from exchange_models import TinyGpt, text_batch
from exchange_workers import run_ranks
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.functional import cross_entropy

from dsc.exchange import Profiler

ROOT = Path(__file__).resolve().parents[3]


def step(model, index):
    words, following = text_batch(index, 0)
    cross_entropy(model(words).flatten(0, 1), following.flatten()).backward()


def test_the_profile_lists_every_gradient_in_the_order_in_which_backward_made_it(tmp_path):
    torch.manual_seed(0)
    model = TinyGpt()
    path = tmp_path / "profile.json"
    profiler = Profiler(model, path, iterations=3, skip=1)
    for index in range(5):
        step(model, index)
    assert profiler.done
    profile = json.loads(path.read_text())
    names = [gradient["name"] for gradient in profile["gradients"]]
    assert sorted(names) == sorted(name for name, _ in model.named_parameters())
    assert sum(gradient["elements"] for gradient in profile["gradients"]) == sum(p.numel() for p in model.parameters())
    assert names.index("head.weight") < names.index("blocks.1.linear2.weight") < names.index("token.weight")
    assert 0 < profile["gradients"][0]["readyMs"] < profile["backwardMs"]
    assert profile["backwardMs"] == pytest.approx(profile["gradients"][-1]["readyMs"], abs=1e-3)
    # The hooks are gone: nothing is measured any more.
    step(model, 9)
    assert profiler.result == profile or json.loads(path.read_text()) == profile


def test_dsc_exchange_plan_reads_the_profile(tmp_path):
    node = ROOT / "node_modules/.bin/node"
    if not node.exists() or not (ROOT / "dist/main.js").exists():
        pytest.skip("dsc is not built here")
    model = TinyGpt()
    path = tmp_path / "profile.json"
    profiler = Profiler(model, path, iterations=2, skip=1)
    for index in range(4):
        step(model, index)
    _set_times(path, 0.2)
    plan = tmp_path / "plan.json"
    command = [node, ROOT / "bin/dsc.js", "exchange", "plan", "--profile", path, "--ranks", "2", "--alpha-us", "50"]
    subprocess.run([*command, "--gigabits", "1", "--out", plan], check=True, capture_output=True)
    written = json.loads(plan.read_text())
    planned = [tensor["name"] for bucket in written["buckets"] for tensor in bucket["tensors"]]
    assert planned == [gradient["name"] for gradient in profiler.result["gradients"]]
    from dsc.exchange import ddp_kwargs

    assert set(ddp_kwargs(plan)) == {"bucket_cap_mb", "gradient_as_bucket_view"}


def _set_times(path, step_ms):
    """Leaves a profile its order and makes its times the same on every machine: a gradient every `step_ms`."""
    profile = json.loads(path.read_text())
    for index, gradient in enumerate(profile["gradients"], 1):
        gradient["readyMs"] = index * step_ms
    profile["backwardMs"] = profile["gradients"][-1]["readyMs"]
    path.write_text(json.dumps(profile))


def _real_buckets(rank, folder, words):
    from torch.nn.parallel import DistributedDataParallel

    from dsc.exchange import ddp_kwargs

    torch.manual_seed(0)
    model = TinyGpt()
    path = Path(folder) / "profile.json"
    profiler = Profiler(model, path, iterations=2, skip=1)
    for index in range(4):
        step(model, index)
    plan = Path(folder) / "plan.json"
    if rank == 0:
        _set_times(path, 0.2)
        command = [ROOT / "node_modules/.bin/node", ROOT / "bin/dsc.js", "exchange", "plan", "--profile", path, *words]
        subprocess.run([*command, "--out", plan], check=True, capture_output=True)
    dist.barrier()
    ddp = DistributedDataParallel(model, **ddp_kwargs(plan))
    sizes = []

    def record(state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        sizes.append(bucket.buffer().numel())
        return default_hooks.allreduce_hook(None, bucket)

    ddp.register_comm_hook(None, record)
    for index in range(3):
        sizes.clear()
        step(ddp, index)
    planned = [sum(t["elements"] for t in bucket["tensors"]) for bucket in json.loads(plan.read_text())["buckets"]]
    assert profiler.done
    return planned, sizes, len(ddp_kwargs(plan).get("bucket_cap_mb_list", []))


# Over the slow link waiting for a full bucket costs more than a call, so the first one leaves early: two caps.
@pytest.mark.parametrize(
    "extra, caps", [([], None), (["--optimum"], None), (["--alpha-us", "300", "--gigabits", "0.05"], 2)]
)
def test_ddp_really_makes_the_buckets_that_the_plan_lists(tmp_path, extra, caps):
    if not (ROOT / "dist/main.js").exists():
        pytest.skip("dsc is not built here")
    words = ["--ranks", "2", "--alpha-us", "20", "--gigabits", "2", "--wire", "fp32", *extra]
    planned, real, listed = run_ranks(2, _real_buckets, str(tmp_path), words)[0]
    assert len(planned) > 2
    assert real == planned
    assert caps in (None, listed)


def _advised(rank, folder):
    from torch.nn.parallel import DistributedDataParallel

    from dsc.exchange import probe_link, register_planned_hook

    link = probe_link(repeats=2)
    found = []
    for wire in ("fp16", "fp32", "int8"):
        path = f"{folder}/{rank}-{wire}.json"
        Path(path).write_text(json.dumps({"format": "dsc.exchange.plan/1", "wire": wire, "ddp": {}}))
        model = torch.nn.Linear(100, 100)
        ddp = DistributedDataParallel(model)
        state = register_planned_hook(ddp, path)
        for _ in range(3):
            ddp(torch.ones(1, 100)).sum().backward()
        found.append((type(state).__name__, getattr(state, "step", None)))
    path = f"{folder}/{rank}-later.json"
    Path(path).write_text(json.dumps({"format": "dsc.exchange.plan/1", "wire": "int4", "ddp": {}}))
    with pytest.raises(ValueError, match="says 'int4' on the wire, expected fp32, fp16 or int8"):
        register_planned_hook(ddp, path)
    return link["exchanges"], link["halfValuesPerSecond"], link["int8ValuesPerSecond"], found


def test_the_hook_is_that_of_the_plan_s_type(tmp_path):
    for exchanges, *rates, found in run_ranks(2, _advised, str(tmp_path)):
        assert exchanges["ranks"] == 2
        for cost in (exchanges["fp16"], exchanges["int8"]):
            assert 0 <= cost["callSeconds"] < 1
            assert 1e-12 < cost["secondsPerValue"] < 1e-6
        assert all(1e6 < values_per_second < 1e12 for values_per_second in rates)
        assert found == [("ScaledHalf", 3), ("NoneType", None), ("BlockwiseInt8", None)]
