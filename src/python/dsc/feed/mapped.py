"""Samples that lie in files of this machine: read where they are, by mapping what the feed has opened."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .batch import Batch
from .errors import FeedGone
from .table import SampleTable

if TYPE_CHECKING:
    from .batch import Bytes

# Maximum bytes of a sample that is joined: beyond it NumPy is as fast, and lets other threads run during the copy.
_MOST_JOINED_BYTES = 16384


def map_file(path: str, size: int | None = None) -> memoryview:
    """Maps a file that the feed has open.

    Args:
        path: below the feed's folder in /proc.
        size: bytes; None: all of it.

    Raises:
        FeedGone: it cannot be opened.
    """
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise FeedGone(
            f"the memory of the feed cannot be opened: {error}",
            "run trainer and feed as one user in one process namespace",
        ) from None
    try:
        bytes_of_all = os.fstat(fd).st_size if size is None else size
        if bytes_of_all == 0:  # nothing to map, and no sample is in it but empty ones
            return memoryview(b"")
        return memoryview(mmap.mmap(fd, bytes_of_all, prot=mmap.PROT_READ))
    finally:
        os.close(fd)


class MappedFiles(dict[int, memoryview]):
    """File number of the table → its bytes, mapped when they are first asked for."""

    def __init__(self, mapped: Mapping[str, Any]) -> None:
        super().__init__()
        self._folder = mapped["folder"]
        self._descriptors: list[int] = mapped["descriptors"]

    def __missing__(self, file: int) -> memoryview:
        view = self[file] = map_file(f"{self._folder}/{self._descriptors[file]}")
        return view


class MappedBatch(Batch):
    """A batch whose samples lie in files. Views of them stay valid as long as they are kept.

    `offsets` count from the beginning of the file that a sample is in.
    """

    __slots__ = ("_files", "_table")

    def __init__(
        self,
        epoch: int,
        step: int,
        ids: list[int],
        lengths: list[int],
        offsets: list[int],
        flags: bytes,
        files: MappedFiles,
        table: SampleTable,
    ) -> None:
        super().__init__(epoch, step, ids, lengths, offsets, flags, memoryview(b""), table)
        self._files = files
        self._table = table

    def views(self) -> list[memoryview]:
        """One read-only memoryview per sample."""
        files, file_of = self._files, self._table.files
        return [files[file_of[id]][at : at + length] for id, at, length in zip(self.ids, self.offsets, self.lengths)]

    def stack(self) -> Bytes:
        """The samples in memory of their own: see `Batch.stack`."""
        length, _ = self._row()
        if length > _MOST_JOINED_BYTES:
            return super().stack()
        import numpy

        stacked: Bytes = numpy.frombuffer(bytearray().join(self.views()), numpy.uint8)
        return stacked.reshape(len(self.offsets), length)

    def _view(self, index: int) -> memoryview:
        at = self.offsets[index]
        return self._files[self._table.files[self.ids[index]]][at : at + self.lengths[index]]

    def _run_end(self, start: int, step: int) -> int:
        return start + 1  # neighbors in a shuffle lie far apart in a file

    def _rows(self, start: int, end: int, length: int, step: int) -> Bytes:
        import numpy

        rows: Bytes = numpy.frombuffer(self._view(start), numpy.uint8).reshape(1, length)
        return rows
