"""torchdata's StatefulDataLoader: it makes the batches and keeps the state, the feed gives the samples.

torchrun --standalone --nproc-per-node 2 with_stateful_dataloader.py digits --checkpoint run.pt
"""

import argparse
import base64
import io
import os

import numpy
import torch
import torch.distributed as distributed
from PIL import Image
from torchdata.stateful_dataloader import StatefulDataLoader

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
parser.add_argument("--workers", type=int, default=0)
options = parser.parse_args()

device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32 * 32, 10).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

# batch_size=None: single samples, already this rank's; the loader makes batches of them.
only = None if options.rows else "png"  # beside rows there is nothing to leave out
data = dsc.FeedDataset(options.dataset, only=only, batch_size=None, seed=1, transform=decode)
loader = StatefulDataLoader(data, batch_size=8, num_workers=options.workers, drop_last=True)

step = 0
if os.path.exists(options.checkpoint):  # the loader's state is the same on every rank: that of rank 0 will do
    saved = torch.load(options.checkpoint, map_location=device, weights_only=False)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    loader.load_state_dict(saved["loader"])
    step = saved["step"]


def save():
    """Replaces the checkpoint in one step, so that a kill leaves the old one or the new one."""
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
    torch.save({**state, "step": step}, f"{options.checkpoint}.part")
    os.replace(f"{options.checkpoint}.part", options.checkpoint)


while step < options.epochs * len(loader):
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % options.save_every == 0 and distributed.get_rank() == 0:
            save()
data.close()
distributed.destroy_process_group()
