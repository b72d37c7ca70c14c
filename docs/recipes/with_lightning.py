"""Lightning: it asks a FeedLoader for its state with every checkpoint, and gives it back with ckpt_path="last".

torchrun --standalone --nproc-per-node 2 with_lightning.py digits --checkpoints runs
"""

import argparse
import base64
import io

import numpy
import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from lightning.pytorch.callbacks import ModelCheckpoint
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


class Classifier(LightningModule):
    """One linear layer over the pixels."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(32 * 32, 10)

    def training_step(self, batch, _):
        """The loss of a batch."""
        images, labels = batch
        return torch.nn.functional.cross_entropy(self.layer(images), labels)

    def configure_optimizers(self):
        """The optimizer."""
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


parser = argparse.ArgumentParser()
parser.add_argument("dataset", help="a folder <label>/*.png, or the name of a dataset")
parser.add_argument(
    "--rows", action="store_true", help="images are in rows of Parquet, MDS, JSON lines … or in tar shards"
)
parser.add_argument("--checkpoints", default="runs")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--save-every", type=int, default=5, metavar="STEPS")
parser.add_argument("--ranks", type=int, default=2)
options = parser.parse_args()

seed_everything(0)
only = None if options.rows else "png"  # beside rows there is nothing to leave out
data = dsc.FeedDataset(options.dataset, only=only, batch_size=8, seed=1, transform=decode)
loader = dsc.FeedLoader(data)
trainer = Trainer(
    accelerator="auto",
    devices=options.ranks,
    strategy="ddp",
    max_epochs=options.epochs,
    callbacks=[ModelCheckpoint(options.checkpoints, every_n_train_steps=options.save_every, save_last=True)],
    logger=False,
)
trainer.fit(Classifier(), loader, ckpt_path="last")  # from the start, where there is no last one
loader.close()
