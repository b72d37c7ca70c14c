#!/usr/bin/env python3
"""Everything of the memory system at once, on CPU: two workers and a central node train a small transformer under
less than half of its natural activation memory, fed by the feed.

    $(scripts/python-venv.sh)/bin/python scripts/examples/memory_all_at_once.py [--steps 60]

Rank 0 profiles one iteration, `dsc memory plan` plans it, both ranks train under the plan, push their gradients to
`dsc params serve --mode sync` and pull parameters layer by layer. Bytes are counted by the accounting device.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "src", "python"))
NODE = os.path.join(ROOT, "node_modules", ".bin", "node")
DSC = [NODE if os.path.exists(NODE) else "node", os.path.join(ROOT, "bin", "dsc.js")]
os.environ.setdefault("DSC_BIN", " ".join(DSC))  # what the feed starts its daemon with
WORLD, BATCH, CONTEXT, VOCABULARY = 2, 8, 64, 32
PERSISTENT = ("param", "param_grad", "buffer", "opt_state")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--share", type=float, default=0.45, help="of the natural activation memory")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--folder")
    parser.add_argument("--server")
    options = parser.parse_args()
    if options.rank is not None:
        return train(options)
    with tempfile.TemporaryDirectory(prefix="dsc-example-") as folder:
        options.folder = folder
        return conduct(options)


def conduct(options):
    """Writes the data set, profiles, plans, starts server and workers, and checks what came of it."""
    write_samples(os.path.join(options.folder, "samples"))
    fixed, natural = profile_once(options)
    budget = int(fixed + options.share * natural)
    plan = os.path.join(options.folder, "plan.json")
    profile = os.path.join(options.folder, "profile.json")
    print(subprocess.run(
        [*DSC, "memory", "plan", profile, "--budget", str(budget), "--smallest", "16KiB", "--out", plan],
        check=True, capture_output=True, text=True,
    ).stdout.replace(plan, "plan"), end="")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [*DSC, "params", "serve", "--mode", "sync", "--workers", str(WORLD), "--lr", "0.2", "--momentum", "0.9",
         "--listen", f"127.0.0.1:{port}", "--checkpoint", os.path.join(options.folder, "checkpoint"),
         "--checkpoint-every", "20"], stdout=subprocess.DEVNULL,
    )
    try:
        own = [sys.executable, os.path.abspath(__file__), "--folder", options.folder, "--steps", str(options.steps)]
        server_url = f"http://127.0.0.1:{port}"
        workers = [
            subprocess.Popen([*own, "--rank", str(rank), "--server", server_url], stdout=subprocess.PIPE, text=True)
            for rank in range(WORLD)
        ]
        said = [worker.communicate(timeout=900)[0] for worker in workers]
    finally:
        server.terminate()
        server.wait()
    if any(worker.returncode != 0 for worker in workers):
        print(f"workers ended with {[worker.returncode for worker in workers]}", file=sys.stderr)
        return 1
    results = [json.loads(text) for text in said]
    for rank, result in enumerate(results):
        activations = result["peakBytes"] - fixed
        print(
            f"rank {rank}: loss {result['firstLoss']:.3f} -> {result['lastLoss']:.3f} in {result['steps']} steps; "
            f"activations {activations / 2**20:.2f} MiB of {natural / 2**20:.2f} natural "
            f"({100 * activations / natural:.1f} %), {result['planMisses']} plan misses, fed by {result['feed']}"
        )
    is_fine = all(
        r["peakBytes"] - fixed < 0.5 * natural and r["planMisses"] == 0 and r["lastLoss"] < r["firstLoss"]
        and r["leftReferences"] == 0
        for r in results
    )
    is_same = results[0]["parameters"] == results[1]["parameters"]
    print(f"under half the memory, learning, nothing left over: {is_fine}; both ranks end equal: {is_same}")
    return 0 if is_fine and is_same else 1


def profile_once(options):
    """Profiles iteration 1; returns bytes that are no activations, and the natural peak of those that are."""
    import torch

    import dsc

    torch.set_num_threads(1)
    model, tokens = make_model(), torch.zeros(BATCH, CONTEXT, dtype=torch.long)
    profile = dsc.memory.profile(
        model, tokens, out=os.path.join(options.folder, "profile.json"), loss=lambda logits: loss_of(logits, tokens)
    )
    sizes = {t["storage"]: t["bytes"] for t in profile["tensors"] if t["kind"] in PERSISTENT}
    fixed = sum(sizes.values())
    return fixed, profile["peak"]["bytes"] - fixed


def train(options):
    """One rank: batches from the feed, a forward under the plan, gradients to the central node."""
    import torch

    import dsc

    torch.set_num_threads(1)
    model = make_model()
    batches, feed = open_batches(os.path.join(options.folder, "samples"), options.rank)
    client = dsc.params.connect(model, options.server, options.rank)
    executor = dsc.memory.Offload(os.path.join(options.folder, "plan.json"))
    tokens = torch.zeros(BATCH, CONTEXT, dtype=torch.long)  # the accounted batch: as in the profile, one of them
    losses = []
    with dsc.memory.AccountingDevice() as device:
        device.hold(model, tokens)
        device.reset_peak()
        while (step := client.begin_step()) < options.steps:
            with device.uncounted():  # the host's side: receiving a batch
                tokens.copy_(next(batches))
            torch.manual_seed(WORLD * step + options.rank)
            with executor:
                loss = loss_of(model(tokens), tokens)
            loss.backward()
            losses.append(loss.item())
            del loss
            peak = device.peak_bytes
            client.push()
            model.zero_grad()
        with device.uncounted():
            client.load()
            parameters = sum(p.double().abs().sum().item() for p in model.parameters())
    executor.end_step()
    client.close()
    print(json.dumps({
        "steps": len(losses), "firstLoss": losses[0], "lastLoss": losses[-1], "peakBytes": peak,
        "planMisses": executor.counts["planMisses"], "leftReferences": executor.counts["leftReferences"],
        "parameters": parameters, "feed": feed,
    }), flush=True)
    os._exit(0)  # not to wait for loaders' daemons


def open_batches(folder, rank):
    """Batches without end: from the feed where this checkout has it, else read in order by torch's own loader."""
    import torch

    import dsc

    def to_tokens(data):
        return torch.frombuffer(bytearray(data), dtype=torch.uint8).long()

    if hasattr(dsc, "FeedLoader"):
        dataset = dsc.FeedDataset(
            folder, batch_size=BATCH, seed=1, rank=rank, world=WORLD,
            transform=lambda sample: to_tokens(bytes(sample.data)),
        )
        loader, name = dsc.FeedLoader(dataset), "dsc.FeedLoader"
    else:
        paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))[rank::WORLD]

        class Files(torch.utils.data.Dataset):
            def __len__(self):
                return len(paths)

            def __getitem__(self, index):
                with open(paths[index], "rb") as file:
                    return to_tokens(file.read())

        loader = torch.utils.data.DataLoader(Files(), batch_size=BATCH, drop_last=True)
        name = "torch's DataLoader (this checkout has no dsc.FeedLoader)"

    def forever():
        while True:
            yield from loader

    return forever(), name


def write_samples(folder, count=256):
    """Sequences that repeat with a period: a model that looks back can predict them."""
    import random

    generator = random.Random(7)
    os.makedirs(folder)
    for index in range(count):
        period = [generator.randrange(VOCABULARY) for _ in range(generator.choice((3, 5, 8)))]
        with open(os.path.join(folder, f"{index:05}.bin"), "wb") as file:
            file.write(bytes((period * CONTEXT)[:CONTEXT]))


def loss_of(logits, tokens):
    import torch

    return torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))


def make_model():
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc1, self.fc2, self.act = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.GELU()

        def forward(self, x):
            b, t, w = x.shape
            q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, 4, w // 4).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, w))
            return x + self.fc2(self.act(self.fc1(self.ln2(x))))

    class Transformer(nn.Module):
        def __init__(self, width=64, blocks=6):
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, width)
            self.position = nn.Embedding(CONTEXT, width)
            self.register_buffer("places", torch.arange(CONTEXT))
            self.blocks = nn.Sequential(*[Block(width) for _ in range(blocks)])
            self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY)

        def forward(self, tokens):
            return self.head(self.ln(self.blocks(self.embedding(tokens) + self.position(self.places))))

    torch.manual_seed(0)
    return Transformer()


if __name__ == "__main__":
    start = time.perf_counter()
    code = main()
    print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr)
    sys.exit(code)
