"""Makes the sets of cold.mjs in the formats that loaders want: cold_data.py BUCKET SHARDS SHARD_BYTES SAMPLE_BYTES SETS LOADERS.

BUCKET/objects is there. MDS and LitData are left out where their packages are not installed.
"""

import glob
import io
import os
import pathlib
import sys
import tarfile

bucket = sys.argv[1]
shards, shard_bytes, sample_bytes = map(int, sys.argv[2:5])
sets, loaders = (names.split(",") for names in sys.argv[5:])
CHUNK = "64MB"


def make_shards():
    folder = pathlib.Path(bucket, "shards")
    folder.mkdir(parents=True)
    number = 0
    for shard in range(shards):
        with tarfile.open(folder / f"{shard:05}.tar", "w") as tar:
            for _ in range(shard_bytes // (sample_bytes + 512)):
                entry = tarfile.TarInfo(f"{number:08}.bin")
                entry.size = sample_bytes
                tar.addfile(entry, io.BytesIO(os.urandom(sample_bytes)))
                number += 1


def samples(name):
    if name == "objects":
        for path in sorted(glob.glob(f"{bucket}/objects/*/*.bin")):
            yield pathlib.Path(path).read_bytes()
        return
    for path in sorted(glob.glob(f"{bucket}/shards/*.tar")):
        with tarfile.open(path) as tar:
            for member in tar:
                yield tar.extractfile(member).read()


def make_mds(name):
    from streaming import MDSWriter

    with MDSWriter(out=f"{bucket}/{name}-mds", columns={"x": "bytes"}, size_limit=shard_bytes) as writer:
        for sample in samples(name):
            writer.write({"x": sample})


def read_path(path):
    return pathlib.Path(path).read_bytes()


def read_shard(path):
    with tarfile.open(path) as tar:
        for member in tar:
            yield tar.extractfile(member).read()


def make_lit(name):
    from litdata import optimize

    if name == "objects":
        inputs, read = sorted(glob.glob(f"{bucket}/objects/*/*.bin")), read_path
    else:
        inputs, read = sorted(glob.glob(f"{bucket}/shards/*.tar")), read_shard
    optimize(read, inputs, f"{bucket}/{name}-lit", chunk_bytes=CHUNK, num_workers=1)


if __name__ == "__main__":
    if "shards" in sets:
        make_shards()
    for name in sets:
        for loader, make in (("mosaicml", make_mds), ("litdata", make_lit)):
            if loader not in loaders:
                continue
            try:
                make(name)
            except ImportError as error:
                print(f"{make.__name__}: {error}", file=sys.stderr)
