"""transformers' Trainer: it takes a FeedLoader for its own loader, and a callback saves its place with the rest.

torchrun --standalone --nproc-per-node 2 with_trainer.py digits --checkpoints runs
"""

import argparse
import base64
import io
import json
import pathlib

import numpy
import torch
from PIL import Image
from transformers import Trainer, TrainerCallback, TrainingArguments

import dsc


def decode(sample):
    """What the model is called with: the pixels of an image, and its label, of a file or a row."""
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
    return {"images": torch.from_numpy(pixels).flatten(), "labels": int(label)}


class Classifier(torch.nn.Module):
    """One linear layer over the pixels; a model of transformers goes here as well."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(32 * 32, 10)

    def forward(self, images, labels):
        """The loss, and the scores of the labels."""
        scores = self.layer(images)
        return {"loss": torch.nn.functional.cross_entropy(scores, labels), "logits": scores}


class FeedTrainer(Trainer):
    """Reads a FeedLoader instead of making a loader: Trainer would divide among the ranks what is divided already."""

    loader: dsc.FeedLoader

    def get_train_dataloader(self):
        """The loader of this rank's batches."""
        return self.loader


class SaveFeed(TrainerCallback):
    """Writes the loader's place into every checkpoint, last: one that has it is whole."""

    def on_save(self, args, state, control, **_):
        """After the rest of the checkpoint is written."""
        if state.is_world_process_zero:
            folder = pathlib.Path(args.output_dir, f"checkpoint-{state.global_step}")
            (folder / "feed.json").write_text(json.dumps(loader.state_dict()))


parser = argparse.ArgumentParser()
parser.add_argument("dataset", help="a folder <label>/*.png, or the name of a dataset")
parser.add_argument(
    "--rows", action="store_true", help="images are in rows of Parquet, MDS, JSON lines … or in tar shards"
)
parser.add_argument("--checkpoints", type=pathlib.Path, default="runs")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--save-every", type=int, default=5, metavar="STEPS")
options = parser.parse_args()

arguments = TrainingArguments(
    output_dir=str(options.checkpoints),
    num_train_epochs=options.epochs,
    save_steps=options.save_every,
    ignore_data_skip=True,  # the feed goes to its place by itself; Trainer would read all that was before it
    use_cpu=not torch.cuda.is_available(),  # left out, several ranks without a GPU do not find each other
    report_to="none",
)
torch.manual_seed(0)
trainer = FeedTrainer(Classifier(), arguments, callbacks=[SaveFeed()])

only = None if options.rows else "png"  # beside rows there is nothing to leave out
data = dsc.FeedDataset(options.dataset, only=only, batch_size=8, seed=1, transform=decode)
loader = trainer.loader = dsc.FeedLoader(data)
saved = sorted(options.checkpoints.glob("checkpoint-*/feed.json"), key=lambda path: path.stat().st_mtime)
if saved:
    loader.load_state_dict(json.loads(saved[-1].read_text()))
trainer.train(resume_from_checkpoint=str(saved[-1].parent) if saved else None)
loader.close()
