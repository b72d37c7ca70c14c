"""Writes a folder of images in another format, by the format's own library: `FORMAT IMAGES OUT`.

Rows have `image`, the bytes of the PNG file, and `label`. The tests run this with the environment that has the library.
"""

import base64
import csv
import json
import pathlib
import sys
import tarfile


def rows(images):
    """The images in the order of their names, each with the folder that it lies in."""
    for path in sorted(images.glob("*/*.png"), key=lambda path: path.name):
        yield {"image": path.read_bytes(), "label": int(path.parent.name)}


def texts(images):
    return [{"image": base64.b64encode(row["image"]).decode(), "label": row["label"]} for row in rows(images)]


def write_tar(images, out):
    for part in range(3):
        with tarfile.open(out / f"{part}.tar", "w") as shard:
            for path in sorted(images.glob("*/*.png"))[part::3]:
                shard.add(path, path.relative_to(images))


def write_webdataset(images, out):
    import webdataset

    with webdataset.ShardWriter(str(out / "%05d.tar"), maxcount=50, verbose=0) as writer:
        for number, row in enumerate(rows(images)):
            writer.write({"__key__": f"{number:04}", "image": row["image"], "label": str(row["label"]).encode()})


def write_jsonl(images, out):
    (out / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in texts(images)))


def write_csv(images, out):
    with open(out / "train.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, ["image", "label"])
        writer.writeheader()
        writer.writerows(texts(images))


def write_parquet(images, out):
    import datasets

    columns = list(rows(images))
    table = {
        "image": [{"bytes": row["image"], "path": None} for row in columns],
        "label": [row["label"] for row in columns],
    }
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    datasets.Dataset.from_dict(table, features=features).to_parquet(out / "train-00000-of-00001.parquet")


def write_mds(images, out):
    from streaming import MDSWriter

    with MDSWriter(out=str(out), columns={"image": "bytes", "label": "int"}, size_limit=20_000) as writer:
        for row in rows(images):
            writer.write(row)


def as_it_is(row):
    return row


def write_litdata(images, out):
    import litdata

    inputs = list(rows(images))
    litdata.optimize(fn=as_it_is, inputs=inputs, output_dir=str(out), chunk_size=50, num_workers=1)


if __name__ == "__main__":
    name, images, out = sys.argv[1:]
    pathlib.Path(out).mkdir()
    globals()[f"write_{name}"](pathlib.Path(images), pathlib.Path(out))
