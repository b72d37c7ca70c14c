"""Plain PyTorch under torchrun, which starts the ranks again when one dies: samples go on where the checkpoint is.

export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1  # or gloo may look for ranks that are gone, and new ones wait for them
torchrun --standalone --nproc-per-node 2 --max-restarts 3 with_torchrun.py digits --checkpoint run.pt
"""

import argparse
import base64
import io
import os

import numpy
import torch
import torch.distributed as distributed
from PIL import Image

import dsc


def decode(sample):
    """The pixels of an image, and its label: of a file <label>/*.png, or of a row in any other format."""
    if sample.name.endswith(".png"):
        image, label = sample.data, sample.name.split("/")[-2]
    else:
        row = sample.row()
        image, label = row["image"], row["label"]
        if isinstance(image, dict):  # as Hugging Face writes images into Parquet
            image = image["bytes"]
        if isinstance(image, str):  # JSON lines and CSV hold text
            image = base64.b64decode(image)
    pixels = numpy.asarray(Image.open(io.BytesIO(image)).convert("L"), numpy.float32) / 255
    return torch.from_numpy(pixels).flatten(), int(label)


parser = argparse.ArgumentParser()
parser.add_argument("dataset", help="a folder <label>/*.png, or the name of a dataset")
parser.add_argument(
    "--rows", action="store_true", help="images are in rows of Parquet, MDS, JSON lines … or in tar shards"
)
parser.add_argument("--checkpoint", default="run.pt")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--save-every", type=int, default=5, metavar="STEPS")
parser.add_argument("--batch", type=int, default=16, help="samples of all ranks together in a step")
options = parser.parse_args()

device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
rank, world = distributed.get_rank(), distributed.get_world_size()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32 * 32, 10).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

# Elastic: the batch of all ranks stays as it is, however many there are, so that any number of them can go on.
only = None if options.rows else "png"  # beside rows there is nothing to leave out
data = dsc.FeedDataset(options.dataset, only=only, batch_size=options.batch // world, seed=1, transform=decode)
loader = dsc.FeedLoader(data)

epoch, step = 0, 0
if os.path.exists(options.checkpoint):
    saved = torch.load(options.checkpoint, map_location=device)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    loader.load_state_dict(saved["feed"])
    epoch, step = saved["feed"]["epoch"], saved["step"]


def save():
    """Replaces the checkpoint in one step, so that a kill leaves the old one or the new one."""
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "feed": loader.state_dict()}
    torch.save({**state, "step": step}, f"{options.checkpoint}.part")
    os.replace(f"{options.checkpoint}.part", options.checkpoint)


for _ in range(epoch, options.epochs):
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % options.save_every == 0 and rank == 0:
            save()
loader.close()
distributed.destroy_process_group()
