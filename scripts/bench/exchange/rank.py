"""One rank of the exchange benchmark. Started once per rank by compare.py; rank 0 prints one JSON object."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "src/python"), str(ROOT / "src/python/tests")]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from loads import build_load  # noqa: E402
from quality import accuracy, convergence  # noqa: E402
from ways import hooked, measure  # noqa: E402

from dsc.exchange import (  # noqa: E402
    Profiler,
    SharedMemory,
    ddp_kwargs,
    probe_link,
)

MIB = 1 << 20


def run_dsc(*words):
    node = ROOT / "node_modules/.bin/node"
    done = subprocess.run([node, ROOT / "bin/dsc.js", *map(str, words), "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def steps(arguments, folder):
    """Backward with the exchange in it, beside several loads: who computes the same gradients, and for how long."""
    link = probe_link(f"{folder}/link.json")
    return {"link": link, "loads": [steps_of(arguments, folder, load) for load in arguments.loads.split(",")]}


def steps_of(arguments, folder, load):
    """Median milliseconds of backward, every way in turn within one run."""
    torch.manual_seed(0)
    build, batch = build_load(arguments, load)
    rank = dist.get_rank()
    model = build()
    profiler = Profiler(model, f"{folder}/profile.json", iterations=5, skip=2, name="linear")
    for _ in range(8):
        dist.barrier()
        model(batch).square().mean().backward()
    compute_ms = profiler.finish()["backwardMs"]
    plans = {}
    for wire in ("fp32", "fp16", "auto"):
        path = f"{folder}/{wire}.plan.json"
        if rank == 0:
            plan = run_dsc(
                "exchange", "plan", "--profile", f"{folder}/profile.json", "--link", f"{folder}/link.json",
                "--ranks", 2, "--wire", wire, "--out", path,
            )
            plans[wire] = {key: plan[key] for key in ("wire", "wireExplanation", "threshold", "ddp") if key in plan}
        dist.barrier()
    ways = {}
    for name, hook, wire in [
        ("gloo fp32", None, "fp32"),
        ("fp16 hook", "fp16", "fp16"),
        ("dsc scaled fp16", "scaled", "fp16"),
        ("dsc int8", "int8", "fp16"),
    ]:
        ways[f"{name}, DDP's buckets"] = hooked(build(), hook)
        ways[f"{name}, threshold"] = hooked(build(), hook, ddp_kwargs(f"{folder}/{wire}.plan.json"))
    rows = measure(arguments, ways, batch)
    return {"load": load, "backwardMs": compute_ms, "gradientMib": gradient_mib(model), "plans": plans, "rows": rows}


def levels(arguments, folder):
    """Backward with the exchange in it, several ranks per host: PyTorch's hooks, one level and two, in turn."""
    return [levels_of(arguments, load) for load in arguments.level_loads.split(",")]


def levels_of(arguments, load):
    torch.manual_seed(0)
    build, batch = build_load(arguments, load)
    ways = {}
    for name, hook, count in [
        ("gloo fp32", None, 1),
        ("PyTorch fp16 hook", "fp16", 1),
        ("dsc scaled fp16, one level", "scaled", 1),
        ("dsc scaled fp16, two levels", "scaled", 2),
        ("dsc int8, one level", "int8", 1),
        ("dsc int8, two levels", "int8", 2),
    ]:
        cap = {"bucket_cap_mb": arguments.level_cap} if name.startswith("dsc") else {}
        ways[name] = hooked(build(), hook, cap, levels=count)
    return {"load": load, "gradientMib": gradient_mib(build()), "rows": measure(arguments, ways, batch)}


def hooks(arguments, folder):
    """PyTorch's hooks with DDP's own buckets, and dsc's with those that its plan has for them."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    load = arguments.level_loads.split(",")[0]
    link = probe_link(f"{folder}/link.json")
    torch.manual_seed(0)
    build, batch = build_load(arguments, load)
    model = build()
    profiler = Profiler(model, f"{folder}/profile.json", iterations=5, skip=2, name="linear")
    for _ in range(8):
        model(batch).square().mean().backward()
    profiler.finish()
    for wire in ("fp16", "int8", "auto") if rank == 0 else ():
        plan = run_dsc(
            "exchange", "plan", "--profile", f"{folder}/profile.json", "--link", f"{folder}/link.json",
            "--ranks", ranks, "--wire", wire, "--out", f"{folder}/{wire}.plan.json",
        )
    dist.barrier()
    ways = {
        "DDP's default": hooked(build(), None),
        "fp16 hook": hooked(build(), "fp16"),
        "bf16 hook": hooked(build(), "bf16"),
        # One bucket: it starts collectives as others end, in an order that gloo's ranks do not share.
        "PowerSGD hook, rank 1": hooked(build(), "PowerSGD", {"bucket_cap_mb": 1000}),
        "dsc ScaledHalf": hooked(build(), "scaled", ddp_kwargs(f"{folder}/fp16.plan.json")),
        "dsc BlockwiseInt8": hooked(build(), "int8", ddp_kwargs(f"{folder}/int8.plan.json")),
    }
    rows = measure(arguments, ways, batch)
    explanation = plan["wireExplanation"] if rank == 0 else ""
    return {"ranks": ranks, "load": load, "link": link, "gradientMib": gradient_mib(model), "explanation": explanation, "rows": rows}


def gradient_mib(model):
    return sum(p.numel() for p in model.parameters()) * 4 / MIB


def plain(arguments, folder):
    """All-reduce of one tensor through gloo, in fp32 and cast to fp16, for comparison with dsc's own ring."""
    rows = []
    for mib in (4, 25):
        tensors = {"gloo fp32": torch.ones(mib * MIB // 4), "gloo fp16": torch.ones(mib * MIB // 4, dtype=torch.float16)}
        calls = {name: (dist.all_reduce, tensor) for name, tensor in tensors.items()}
        rows.append({"mib": mib, **in_turn(calls, arguments.repeats)})
    return rows


def shared(arguments, folder):
    """All-reduce of one fp32 tensor: gloo against shared memory, in turn."""
    memory = SharedMemory()
    rows = []
    for mib in (1, 4, 25, 64):
        tensor = torch.ones(mib * MIB // 4)
        calls = {"gloo": (dist.all_reduce, tensor), "shared memory": (memory.all_reduce, tensor)}
        rows.append({"mib": mib, **in_turn(calls, arguments.repeats)})
    return rows


def in_turn(calls, repeats):
    """Median milliseconds of each call, after two rounds that do not count."""
    times = {name: [] for name in calls}
    for round_ in range(repeats + 2):
        for name, (call, tensor) in calls.items():
            tensor.fill_(1.0)
            dist.barrier()
            start = time.perf_counter()
            call(tensor)
            if round_ >= 2:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) * 1000 for name, seconds in times.items()}


def main():
    parser = argparse.ArgumentParser()
    for name in ("master", "interface", "folder"):
        parser.add_argument(f"--{name}", required=True)
    numbers = {"rank": 0, "ranks": 2, "rounds": 15, "repeats": 15, "width": 1024, "layers": 14, "gpt-steps": 300, "seeds": 5}
    for name, usual in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--parts", default="steps")
    parser.add_argument("--loads", default="batch:256,batch:128,wait:200,wait:100")
    parser.add_argument("--level-loads", default="wait:100,wait:200")
    parser.add_argument("--level-cap", type=float, default=4.0, help="MiB per bucket of the scaled hooks")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = arguments.interface
    host, port = arguments.master.rsplit(":", 1)
    dist.init_process_group("gloo", init_method=f"tcp://{host}:{port}", rank=arguments.rank, world_size=arguments.ranks)
    parts = {"steps": steps, "plain": plain, "shared": shared, "levels": levels, "hooks": hooks, "accuracy": accuracy, "convergence": convergence}
    results = {name: parts[name](arguments, arguments.folder) for name in arguments.parts.split(",")}
    dist.barrier()
    if arguments.rank == 0:
        print(json.dumps(results))
    dist.destroy_process_group()


main()
