"""Trains a small classifier on the digits images through a dsc feed, on every rank of a job; resumes where it was.

    torchrun --nproc-per-node 2 scripts/examples/train-digits.py "$(dsc prepare digits)" --checkpoint run.pt

Kill it at any time, with any signal, and start it again: it goes on with the very next batch after its last
checkpoint, so that the samples come in the same sequence as in a run that was never killed.
"""

import argparse
import os
import struct
import zlib

import numpy
import torch
import torch.distributed as distributed

import dsc


def read_png(data):
    """An 8-bit grey PNG as an array [height, width]."""
    data, at, compressed = bytes(data), 8, b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height = struct.unpack_from(">II", body)
        elif kind == b"IDAT":
            compressed += body
        at += 12 + length
    rows = numpy.frombuffer(zlib.decompress(compressed), numpy.uint8).reshape(height, width + 1)
    image = rows[:, 1:].astype(numpy.int64)
    for y in range(height):
        above = image[y - 1] if y else numpy.zeros(width, numpy.int64)
        filter, line = rows[y, 0], image[y]
        if filter == 1:
            image[y] = numpy.cumsum(line) & 255
        elif filter == 2:
            image[y] = (line + above) & 255
        elif filter in (3, 4):
            for x in range(width):
                left, corner = (line[x - 1], above[x - 1]) if x else (0, 0)
                line[x] = (line[x] + ((left + above[x]) >> 1 if filter == 3 else _paeth(left, above[x], corner))) & 255
    return image


def _paeth(a, b, c):
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def decode(sample):
    """Image, label (the folder that the image is in) and id of a sample."""
    image = torch.from_numpy(read_png(sample.data)).to(torch.float32).div_(255)
    return image.flatten(), int(sample.name.split("/")[-2]), sample.id


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", help="folder <class>/*.png, such as `dsc prepare digits` prints")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32, help="samples per rank and step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--checkpoint", default="train-digits.pt")
    parser.add_argument("--checkpoint-every", type=int, default=5, metavar="STEPS")
    parser.add_argument("--log", help="append the ids of every batch of this rank to <log>.<rank>")
    options = parser.parse_args()

    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    network = torch.nn.Sequential(torch.nn.LazyLinear(64), torch.nn.ReLU(), torch.nn.Linear(64, 10))

    feed = dsc.FeedDataset(options.dataset, only="png", batch_size=options.batch, seed=options.seed, transform=decode, memory="32MiB")
    loader = dsc.FeedLoader(feed, num_workers=options.workers)
    first = next(iter(feed.batches()))[0]
    network(decode(first)[0])  # gives the lazy layer its size
    feed.close()
    model = torch.nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    epoch, step = 0, 0
    if os.path.exists(options.checkpoint):
        saved = torch.load(options.checkpoint, weights_only=False)
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["feed"])
        epoch, step = saved["feed"]["epoch"], saved["step"]
        if rank == 0:
            print(f"resuming at step {step}, position {saved['feed']['position']} of epoch {epoch}", flush=True)

    log = open(f"{options.log}.{rank}", "a") if options.log else None  # noqa: SIM115 -- until the end
    while epoch < options.epochs:
        right = count = 0
        for images, labels, ids in loader:
            scores = model(images)
            loss = torch.nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            right += int((scores.argmax(1) == labels).sum())
            count += len(labels)
            if log:
                print(step, *ids.tolist(), file=log, flush=True)
            if step % options.checkpoint_every == 0:
                if rank == 0:
                    state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "feed": loader.state_dict(), "step": step}
                    torch.save(state, f"{options.checkpoint}.part")
                    os.replace(f"{options.checkpoint}.part", options.checkpoint)
                distributed.barrier()
        if rank == 0:
            print(f"epoch {epoch}: {100 * right / max(1, count):.1f} % of {world * count} samples right", flush=True)
        epoch += 1
    if rank == 0:
        total = sum(parameter.double().sum().item() for parameter in network.parameters())
        print(f"done after {step} steps, sum of the weights {total:.12f}", flush=True)
    loader.close()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
