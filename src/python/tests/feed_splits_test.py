"""Splits as the hub writes them and Hive partitions, in folders of Parquet that pyarrow writes."""

import shutil

import pytest

import dsc

pyarrow = pytest.importorskip("pyarrow", reason="scripts/parquet-venv.sh has it")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def folder(dataset):
    shutil.rmtree(dataset)
    (dataset / "data").mkdir(parents=True)
    return dataset


def split_values(folder, **options):
    feed = dsc.FeedDataset(folder, batch_size=1, order="sequential", **options)
    return [row["s"] for batch in feed for row in batch.rows()]


def test_splits_are_chosen_by_the_hubs_names_or_by_the_card(folder):
    for name in ("train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001", "validation-0"):
        parquet.write_table(pyarrow.table({"s": [name[:5]]}), folder / "data" / f"{name}.parquet")
    assert split_values(folder, split="train") == ["train", "train"]
    assert split_values(folder, split="val") == ["valid"]
    assert split_values(folder, only="data/t*-0000?-of-00001.parquet") == ["test-"]
    with pytest.warns(UserWarning, match="splits test, train, validation are fed as one"):
        assert len(split_values(folder)) == 4
    with pytest.raises(dsc.FeedError, match="files named for the split other"):
        split_values(folder, split="other")
    card = "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: other\n    path: data/v*\n---\n# data\n"
    (folder / "README.md").write_text(card)
    assert split_values(folder, split="other") == ["valid"]


def test_partitions_in_folder_names_are_columns(folder):
    table = pyarrow.table({"year": [2024, 2025, 2025], "kind": ["a", "b c", None], "s": ["x", "y", "z"]})
    dataset = pytest.importorskip("pyarrow.dataset")
    parts = dataset.partitioning(table.select(["year", "kind"]).schema, flavor="hive")
    shutil.rmtree(folder)
    dataset.write_dataset(table, folder, format="parquet", partitioning=parts)
    feed = dsc.FeedDataset(folder, batch_size=3, order="sequential")
    rows = [row for batch in feed for row in batch.rows()]
    assert rows == [sample.row() for batch in feed for sample in batch]
    assert sorted(rows, key=lambda row: row["s"]) == table.sort_by("s").select(["s", "year", "kind"]).to_pylist()
