"""Hugging Face Accelerate: it prepares model and optimizer, leaves a FeedLoader as it is, and saves it with the rest.

torchrun --standalone --nproc-per-node 2 with_accelerate.py digits --checkpoints runs
"""

import argparse
import base64
import io
import os
import pathlib

import numpy
import torch
from accelerate import Accelerator
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
parser.add_argument("--checkpoints", type=pathlib.Path, default="runs")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--save-every", type=int, default=5, metavar="STEPS")
options = parser.parse_args()

accelerator = Accelerator(cpu=not torch.cuda.is_available())  # left out, ranks without a GPU do not find each other
torch.manual_seed(0)
only = None if options.rows else "png"  # beside rows there is nothing to leave out
data = dsc.FeedDataset(options.dataset, only=only, batch_size=8, seed=1, transform=decode)
loader = dsc.FeedLoader(data)
model = torch.nn.Linear(32 * 32, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
accelerator.register_for_checkpointing(loader)  # save_state and load_state take its place along

step = 0
options.checkpoints.mkdir(parents=True, exist_ok=True)
if saved := sorted(options.checkpoints.glob("step-*[0-9]")):
    accelerator.load_state(str(saved[-1]))
    step = int(saved[-1].name.removeprefix("step-"))


def save():
    """Gives the checkpoint its name when all of it is there: a kill leaves no half of one."""
    folder = options.checkpoints / f"step-{step:08}"
    accelerator.save_state(f"{folder}.part")
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        os.replace(f"{folder}.part", folder)


for _ in range(loader.state_dict()["epoch"], options.epochs):
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images.to(accelerator.device)), labels.to(accelerator.device))
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        step += 1
        if step % options.save_every == 0:
            save()
loader.close()
accelerator.end_training()
