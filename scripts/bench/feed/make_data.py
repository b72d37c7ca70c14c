"""The data sets of `npm run bench -- feed`: the same samples as files, as tar shards, as MDS and as LitData chunks."""

import io
import os
import random
import subprocess
import sys
import tarfile


def noise(size):
    """Samples of `size` bytes that do not compress."""
    return lambda i: i.to_bytes(4, "little") + os.urandom(size - 4)


def photo(i):
    """A JPEG of 256 x 256 pixels with the size and the detail of a small photo, about 20 KB."""
    import numpy
    from PIL import Image

    rng = numpy.random.default_rng(i)
    coarse = Image.fromarray(rng.integers(0, 255, (24, 24, 3), dtype=numpy.uint8)).resize((256, 256), Image.BICUBIC)
    pixels = numpy.asarray(coarse, dtype=numpy.int16) + rng.integers(-12, 12, (256, 256, 3), dtype=numpy.int16)
    out = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8)).save(out, "JPEG", quality=85)
    return out.getvalue()


def make_set(folder, count, bytes_of, formats=("tar", "mds", "lit")):
    raw = folder / "raw"
    for i in range(count):
        path = raw / f"{i % 100:03}" / f"{i:06}.bin"
        if i < 100:
            path.parent.mkdir(parents=True)
        path.write_bytes(bytes_of(i))
    files = sorted(raw.glob("*/*.bin"))
    random.Random(0).shuffle(files)  # a shard holds any samples, as shards should
    (folder / "tar").mkdir()
    per_shard = max(1, min(50 * 2**20 // files[0].stat().st_size, count // 8))  # enough shards for any number of workers here
    for shard, at in enumerate(range(0, count, per_shard)):
        with tarfile.open(folder / "tar" / f"{shard:04}.tar", "w") as tar:
            for path in files[at : at + per_shard]:
                tar.add(path, arcname=path.name)
        os.chmod(folder / "tar" / f"{shard:04}.tar", 0o444)  # as dsc stages files: trainers map what nobody may write to
    for kind, script in SCRIPTS.items():
        if kind in formats:
            path = folder / f"write_{kind}.py"  # a file of its own, because litdata's writers pickle the function
            path.write_text(script)
            done = subprocess.run([sys.executable, str(path), str(raw), str(folder / kind)], capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{path.name} failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)


HEAD = """
import glob, sys
raw, out = sys.argv[1:]
paths = sorted(glob.glob(raw + '/*/*.bin'))
"""
SCRIPTS = {
    "mds": HEAD + """
from streaming import MDSWriter
with MDSWriter(out=out, columns={'x': 'bytes'}) as writer:
    for path in paths: writer.write({'x': open(path, 'rb').read()})
""",
    "lit": HEAD + """
from litdata import optimize
def read(path): return open(path, 'rb').read()
if __name__ == '__main__':
    optimize(read, paths, out, chunk_bytes='64MB', num_workers=1)
""",
}
