"""Writes fixtures/formats/ with the formats' own libraries: 20 rows each, as `row` below says.

    "$(scripts/formats-venv.sh)/bin/python" scripts/make-format-fixtures.py
"""

import json
import pathlib
import shutil

import litdata
import numpy
import torch
from streaming import MDSWriter

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "formats"
COUNT = 20
MDS_COLUMNS = {
    "id": "int",
    "text": "str",
    "bytes": "bytes",
    "json": "json",
    "array": "ndarray",
    "fixed": "ndarray:float32:2,3",
    "small": "uint8",
    "half": "float32",
    "big": "str_int",
    "empty": "str",
}


def mds_row(i):
    return {
        "id": i,
        "text": f"text ü {i}" * (i % 3),
        "bytes": bytes(range(i)),
        "json": {"list": [i, None, "x"]},
        "array": numpy.arange(i + 1, dtype=numpy.int16).reshape(1, -1),
        "fixed": numpy.full((2, 3), i, numpy.float32),
        "small": i,
        "half": i / 2,
        "big": 10**20 + i,
        "empty": "",
    }


def litdata_row(i):
    return {
        "id": i,
        "half": i / 2,
        "text": f"text ü {i}",
        "bytes": bytes(range(i)),
        "array": numpy.arange(i + 1, dtype=numpy.float32).reshape(1, -1),
        "flat": numpy.arange(i, dtype=numpy.uint16),
        "tensor": torch.full((2, 2), i),
        "tokens": torch.arange(i),
        "odd": i % 2 == 1,
        "nested": {"a": (i, [f"{i}"])},
    }


def write_mds(folder):
    with MDSWriter(out=str(folder), columns=MDS_COLUMNS, size_limit=1500, hashes=["sha1"]) as writer:
        for i in range(COUNT):
            writer.write(mds_row(i))


def write_litdata(folder):
    litdata.optimize(fn=litdata_row, inputs=list(range(COUNT)), output_dir=str(folder), chunk_size=7, num_workers=1)


if __name__ == "__main__":
    for name, write in (("mds", write_mds), ("litdata", write_litdata)):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        write(FOLDER / name)
    index = FOLDER / "litdata" / "index.json"
    content = json.loads(index.read_text())
    content.pop("updated_at", None)
    index.write_text(json.dumps(content))
