#!/usr/bin/env python3
"""Makes fixtures/datasets/digits from the copy of the UCI handwritten digits in scikit-learn's wheel.

    pip download --no-deps scikit-learn
    python3 scripts/make-digits.py scikit_learn-*.whl

Takes a wheel or sklearn/datasets/data/digits.csv.gz itself. The same input makes the same pixels; the bytes
of the files also depend on the version of zlib. Standard library only.
"""

import csv
import gzip
import io
import shutil
import struct
import sys
import zipfile
import zlib
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "fixtures" / "datasets" / "digits"
MEMBER = "sklearn/datasets/data/digits.csv.gz"
SIDE = 8  # pixels of an original
SCALE = 4  # each becomes SCALE × SCALE pixels
DARKEST = 16  # values of the original run from 0 to 16


def read_rows(path):
    """Yields (64 values, label) for each digit."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as wheel:
            packed = wheel.read(MEMBER)
    else:
        packed = Path(path).read_bytes()
    for row in csv.reader(io.StringIO(gzip.decompress(packed).decode("ascii"))):
        numbers = [int(float(cell)) for cell in row]
        yield numbers[: SIDE * SIDE], numbers[SIDE * SIDE]


def encode_png(values):
    """An 8-bit grayscale PNG, white strokes on black, each value SCALE × SCALE pixels."""
    side = SIDE * SCALE
    lines = bytearray()
    for y in range(side):
        row = values[y // SCALE * SIDE : (y // SCALE + 1) * SIDE]
        pixels = bytes(round(value * 255 / DARKEST) for value in row for _ in range(SCALE))
        # Filter 2 (up) makes a repeated line all zeros.
        lines += b"\0" + pixels if y % SCALE == 0 else b"\2" + bytes(side)
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(lines), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for label in range(10):
        shutil.rmtree(TARGET / str(label), ignore_errors=True)
        (TARGET / str(label)).mkdir(parents=True)
    lines = ["file,label"]
    total = 0
    for index, (values, label) in enumerate(read_rows(sys.argv[1])):
        name = f"{label}/{index:04d}.png"
        png = encode_png(values)
        (TARGET / name).write_bytes(png)
        total += len(png)
        lines.append(f"{name},{label}")
    (TARGET / "labels.csv").write_text("\n".join(lines) + "\n")
    print(f"{len(lines) - 1} images, {total} bytes in {TARGET}")


if __name__ == "__main__":
    main()
