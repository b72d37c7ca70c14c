"""The table of samples, which a feed keeps in shared memory: what they are called and how they are stored."""

from __future__ import annotations

import json
import struct
from typing import Any, Protocol

from .partitions import Partitions

HEADER_BYTES = 128  # before the columns; src/samples/table-layout.ts has the order of both


class Catalog(Protocol):
    """Facts about samples besides their bytes.

    Attributes:
        partitions: the columns that folders of files of rows name (`year=2025/`); None: there are none.
    """

    partitions: Partitions | None

    def name_of(self, id: int) -> str:
        """The path of a sample inside the dataset, or that of its file and its number there: `train.jsonl:17`."""

    def encoding_of(self, id: int) -> dict[str, Any]:
        """How the bytes of a sample are stored: `format`, and what else reading them takes."""

    def encodings_of(self, ids: list[int]) -> list[dict[str, Any]]:
        """Those of several samples."""


class SampleTable:
    """A table in shared memory; it copies only what a caller asks for.

    Attributes:
        files: of each sample, the number of the file that it is in.
    """

    def __init__(self, table: memoryview) -> None:
        count, files, name_bytes, path_bytes = (int(size) for size in struct.unpack_from("<4d", table, 16))
        sizes = struct.unpack_from("<4d", table, 80)
        names, row_name_bytes, encoding_bytes, offset_bytes = (int(size) for size in sizes)
        name_end_bytes = 4 if name_bytes < 2**32 else 8
        at = HEADER_BYTES

        def take(numbers: int, bytes_each: int) -> memoryview:
            nonlocal at
            start = -(-at // bytes_each) * bytes_each
            at = start + numbers * bytes_each
            return table[start:at]

        take(files, 8)
        self._row_name_ends = take(files, 8).cast("d")
        self._first_samples = take(files, 8).cast("d")
        take(count, offset_bytes)
        self._name_ends = take(names, name_end_bytes).cast("I" if name_end_bytes == 4 else "d")
        take(count, 4)
        self.files = take(count, 4).cast("I")
        take(count, 4)
        self._file_encodings = take(files, 4).cast("I")
        self._names = take(name_bytes, 1)
        take(path_bytes, 1)
        self._row_names = take(row_name_bytes, 1)
        of_rows = (_text(self._row_names, self._row_name_ends, file) for file in range(files))
        self.partitions = Partitions(of_rows) if b"=" in bytes(self._row_names) else None
        self._encodings: list[dict[str, Any]] = json.loads(bytes(take(encoding_bytes, 1)))

    def name_of(self, id: int) -> str:
        """The path of a sample inside the dataset, or that of its file and its number there."""
        file = self.files[id]
        row_name = _text(self._row_names, self._row_name_ends, file)
        if row_name:
            return f"{row_name}:{id - int(self._first_samples[file])}"
        return _text(self._names, self._name_ends, id)

    def encoding_of(self, id: int) -> dict[str, Any]:
        """How the bytes of a sample are stored."""
        return self._encodings[self._file_encodings[self.files[id]]]

    def encodings_of(self, ids: list[int]) -> list[dict[str, Any]]:
        """Those of several samples."""
        encodings = self._encodings
        return encodings * len(ids) if len(encodings) == 1 else [self.encoding_of(id) for id in ids]


class KeptCatalog:
    """Facts about a few samples, for another process."""

    def __init__(self, known: dict[int, tuple[str, dict[str, Any]]], partitions: Partitions | None) -> None:
        self._known = known
        self.partitions = partitions

    def name_of(self, id: int) -> str:
        """The path of a sample inside the dataset."""
        return self._known[id][0]

    def encoding_of(self, id: int) -> dict[str, Any]:
        """How the bytes of a sample are stored."""
        return self._known[id][1]

    def encodings_of(self, ids: list[int]) -> list[dict[str, Any]]:
        """Those of several samples."""
        return [self._known[id][1] for id in ids]


def keep(catalog: Catalog, ids: list[int]) -> KeptCatalog:
    """The facts of `catalog` about these samples, in memory of its own."""
    known = {id: (catalog.name_of(id), catalog.encoding_of(id)) for id in ids}
    return KeptCatalog(known, catalog.partitions)


def _text(column: memoryview, ends: memoryview[int] | memoryview[float], at: int) -> str:
    start = int(ends[at - 1]) if at else 0
    return bytes(column[start : int(ends[at])]).decode(errors="replace")
