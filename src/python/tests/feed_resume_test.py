"""The ways in which trainers resume by default: each goes on with the very next batch."""

import json

import pytest
import torch
from feed_support import COUNT
from torch.utils.data import DataLoader

import dsc
from dsc.feed.order import epoch_order

BATCH = 8
STEPS = COUNT // BATCH


def id_of(sample):
    return sample.id


def expected(epoch, steps=STEPS):
    ids = epoch_order(COUNT, 7, epoch)[: steps * BATCH]
    return [ids[at : at + BATCH] for at in range(0, len(ids), BATCH)]


def make_loader(dataset, transform=id_of, **options):
    return dsc.FeedLoader(dsc.FeedDataset(dataset, batch_size=BATCH, seed=7, transform=transform), **options)


def lists(batches):
    return [batch.tolist() for batch in batches]


def test_accelerate_skips_batches_and_reads_none_of_them(dataset):
    accelerate = pytest.importorskip("accelerate")
    read = []
    loader = make_loader(dataset, lambda sample: read.append(sample.id) or sample.id)
    rest = accelerate.skip_first_batches(loader, 5)
    assert len(rest) == STEPS - 5
    assert lists(rest) == expected(0)[5:]
    assert len(read) == (STEPS - 5) * BATCH
    assert loader.state_dict()["epoch"] == 1
    assert lists(loader) == expected(1)  # the loader's own place has moved along
    assert lists(accelerate.skip_first_batches(loader, STEPS)) == []
    assert lists(accelerate.skip_first_batches(loader, 1)) == expected(3)[1:]


def test_a_loader_has_no_parts_of_a_dataloader_for_others(dataset):
    loader = make_loader(dataset)
    assert isinstance(loader.dataset, dsc.FeedDataset)
    with pytest.raises(AttributeError, match="drop_last"):
        loader.drop_last  # noqa: B018


def test_a_plain_dataloader_over_a_feed_is_skipped_too(dataset):
    accelerate = pytest.importorskip("accelerate")
    feed = dsc.FeedDataset(dataset, batch_size=BATCH, seed=7, transform=id_of)
    assert list(accelerate.skip_first_batches(DataLoader(feed, batch_size=None), 3)) == expected(0)[3:]


def test_batches_out_of_order_are_refused(dataset):
    with pytest.raises(ValueError, match="in_order=False"):
        make_loader(dataset, num_workers=2, in_order=False)


@pytest.mark.parametrize("steps", [STEPS // 2, STEPS + 3])
def test_trainer_resumes_from_a_checkpoint_as_it_does_by_default(dataset, tmp_path, steps):
    transformers = pytest.importorskip("transformers")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.seen = []

        def forward(self, x=None, labels=None):
            self.seen.append(x.flatten().long().tolist())
            return {"loss": self.layer(x * 1e-5).mean()}

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return make_loader(dataset, lambda sample: {"x": torch.tensor([float(sample.id)]), "labels": 0})

    def train(checkpoint=None):
        arguments = transformers.TrainingArguments(
            str(tmp_path / "out"),
            per_device_train_batch_size=BATCH,
            save_steps=steps,
            max_steps=2 * STEPS,
            use_cpu=True,
            disable_tqdm=True,
            report_to=[],
        )
        model = Model()
        Trainer(model, arguments).train(resume_from_checkpoint=checkpoint)
        return model.seen

    whole = train()
    assert whole == expected(0) + expected(1)
    assert train(str(tmp_path / "out" / f"checkpoint-{steps}")) == whole[steps:]


@pytest.fixture
def fit(dataset, tmp_path, monkeypatch):
    """Trains with Lightning, keeping a checkpoint of every third step; returns the batches seen."""
    lightning = pytest.importorskip("lightning.pytorch")
    from lightning.pytorch.callbacks import ModelCheckpoint

    class Model(lightning.LightningModule):
        def __init__(self, does_estimate):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.seen, self.does_estimate = [], does_estimate

        def training_step(self, batch, _):
            self.seen.append(batch.tolist())
            return self.layer(batch.float().view(-1, 1)).pow(2).mean()

        def configure_optimizers(self):
            if self.does_estimate:
                assert self.trainer.estimated_stepping_batches > 0
            return torch.optim.SGD(self.parameters(), lr=1e-9)

    def fit(*, checkpoint=None, does_estimate=False, workers=0, every=3, **options):
        keep = ModelCheckpoint(dirpath=tmp_path / "kept", save_top_k=-1, every_n_train_steps=every, filename="{step}")
        trainer = lightning.Trainer(
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=checkpoint is None,
            callbacks=[keep] if checkpoint is None else [],
            **options,
        )
        model, loader = Model(does_estimate), make_loader(dataset, num_workers=workers)
        path = None if checkpoint is None else str(tmp_path / "kept" / f"step={checkpoint}.ckpt")
        trainer.fit(model, loader, ckpt_path=path)
        loader.close()
        return model.seen

    return fit


@pytest.mark.parametrize("does_estimate, workers", [(False, 0), (True, 2)])
def test_lightning_resumes_where_it_was_whatever_asks_for_steps_first(fit, does_estimate, workers):
    options = {"max_epochs": 2, "does_estimate": does_estimate, "workers": workers}
    whole = fit(**options)
    assert whole == expected(0) + expected(1)
    assert fit(checkpoint=9, **options) == whole[9:]


@pytest.mark.parametrize("checkpoint, does_estimate", [(6, False), (9, False), (6, True)])
def test_lightning_resumes_epochs_that_a_limit_cuts_short(fit, does_estimate, checkpoint):
    options = {"max_epochs": 3, "limit_train_batches": 6, "does_estimate": does_estimate}
    whole = fit(**options)
    assert whole == [batch for epoch in range(3) for batch in expected(epoch, 6)]
    assert fit(checkpoint=checkpoint, **options) == whole[checkpoint:]


def test_lightning_overfits_on_the_same_batches_in_every_epoch(fit):
    assert fit(max_epochs=3, overfit_batches=3) == 3 * expected(0, 3)


def test_a_state_survives_json(dataset):
    loader = make_loader(dataset)
    next(iter(loader))
    other = make_loader(dataset)
    other.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    assert lists(other) == expected(0)[1:]
