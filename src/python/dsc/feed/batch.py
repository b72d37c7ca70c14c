"""A batch as a client receives it: where the samples of a batch lie in the shared arena."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from .errors import FeedError
from .table import Catalog, keep

if TYPE_CHECKING:
    import numpy

    Bytes: TypeAlias = numpy.ndarray[Any, numpy.dtype[numpy.uint8]]

_ALIGN = 64  # samples begin at multiples of it in the arena


class Sample:
    """One sample.

    Attributes:
        id: its number in the dataset.
        data: its bytes, a read-only view that is valid until the next batch is asked for (see `copy=True`).
        is_padded: whether it only fills up the last batch.
    """

    __slots__ = ("id", "data", "is_padded", "_catalog")

    def __init__(self, id: int, data: memoryview, is_padded: bool, catalog: Catalog) -> None:
        self.id = id
        self.data = data
        self.is_padded = is_padded
        self._catalog = catalog

    @property
    def name(self) -> str:
        """Path of the sample inside the dataset.

        For tar shards: name of the member, or the key of its group; for rows of a file its path and their number there,
        from 0: `train.jsonl:17`.
        """
        return self._catalog.name_of(self.id)

    def fields(self) -> dict[str, memoryview]:
        """The members of a sample of a tar shard.

        Returns:
            Extension → contents: {'jpg': view, 'cls': view}.

        Raises:
            FeedError: the sample is not of a tar shard.
            tarfile.TarError: the sample is damaged.
        """
        from .members import extension_of, split_members

        format = self._catalog.encoding_of(self.id)["format"]
        if format == "member":  # the only one: the sample is its contents
            return {extension_of(self.name) or "": self.data}
        if format != "tar":
            hint = "use sample.data" if format == "file" else "use sample.row()"
            raise FeedError("USAGE", f"{self.name} is not of a tar shard, so it has no members", hint)
        return split_members(self.data)

    def row(self, *, views: bool = False) -> dict[str, Any]:
        """The values of the sample by name: members of a tar shard's, fields of JSON or CSV, columns of Parquet.

        Args:
            views: bytes of 4 KiB and more in a row of Parquet come as read-only memoryviews of the sample instead of
                copies. They are valid as long as `data` is, and cannot be pickled.

        Returns:
            Name → value: {'text': 'hello', 'label': 3}. The text of CSV stays text. Parquet gives bytes, str, int,
            float, bool, list, dict (a struct), None; Decimal, date, time and datetime for what it marks as such; and a
            list of [key, value] lists for a map.

        Raises:
            FeedError: the sample is a whole file, or is not what its format says.
        """
        from .rows import decode_rows

        encoding = self._catalog.encoding_of(self.id)
        row = decode_rows([self.data], [encoding], lambda _: self.name, views)[0]
        partitions = self._catalog.partitions
        return partitions.add_to(row, self.name) if partitions else row

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild_sample, (self.id, bytes(self.data), self.is_padded, keep(self._catalog, [self.id])))


class Batch:
    """A batch. Iterating gives samples.

    Attributes:
        epoch: that it belongs to.
        step: its place in the epoch, from 0.
        ids: of the samples.
        lengths: of the samples, in bytes.
        offsets: where they begin in the arena, in bytes.
        flags: per sample, 1 where it only fills up.
    """

    __slots__ = ("epoch", "step", "ids", "lengths", "offsets", "flags", "_arena", "_catalog")

    def __init__(
        self,
        epoch: int,
        step: int,
        ids: list[int],
        lengths: list[int],
        offsets: list[int],
        flags: bytes,
        arena: memoryview,
        catalog: Catalog,
    ) -> None:
        self.epoch = epoch
        self.step = step
        self.ids = ids
        self.lengths = lengths
        self.offsets = offsets
        self.flags = flags
        self._arena = arena
        self._catalog = catalog

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Sample:
        return Sample(self.ids[index], self._view(index), bool(self.flags[index]), self._catalog)

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self.ids)))

    def views(self) -> list[memoryview]:
        """One read-only memoryview per sample."""
        arena = self._arena
        return [arena[at : at + length] for at, length in zip(self.offsets, self.lengths)]

    def rows(self, *, views: bool = False) -> list[dict[str, Any]]:
        """The values of all samples by name: as `Sample.row`, and quicker than one by one.

        Args:
            views: as for `Sample.row`.

        Raises:
            FeedError: a sample is a whole file, or is not what its format says.
        """
        from .rows import decode_rows

        encodings = self._catalog.encodings_of(self.ids)
        rows = decode_rows(self.views(), encodings, lambda at: self._catalog.name_of(self.ids[at]), views)
        if partitions := self._catalog.partitions:
            for row, id in zip(rows, self.ids):
                partitions.add_to(row, self._catalog.name_of(id))
        return rows

    def array(self) -> Bytes:
        """The samples as one array, valid until the next batch is asked for.

        Returns:
            uint8 [samples, bytes]: a read-only view where they lie side by side in the arena, otherwise a copy.

        Raises:
            ValueError: the samples differ in length.
        """
        length, step = self._row()
        if self._run_end(0, step) == len(self.offsets):
            return self._rows(0, len(self.offsets), length, step)
        return self.stack()

    def stack(self) -> Bytes:
        """The samples in memory of their own: the one copy on the way to a tensor.

        Returns:
            uint8 [samples, bytes].

        Raises:
            ValueError: the samples differ in length.
        """
        import numpy

        length, step = self._row()
        stacked: Bytes = numpy.empty((len(self.offsets), length), dtype=numpy.uint8)
        at = 0
        while at < len(self.offsets):  # neighbours in the arena are copied together
            end = self._run_end(at, step)
            stacked[at:end] = self._rows(at, end, length, step)
            at = end
        return stacked

    def _view(self, index: int) -> memoryview:
        at = self.offsets[index]
        return self._arena[at : at + self.lengths[index]]

    def _row(self) -> tuple[int, int]:
        """The length of all samples, and what neighbours in the arena are apart."""
        length = self.lengths[0]
        if self.lengths.count(length) != len(self.lengths):
            raise ValueError("samples of different lengths cannot be stacked; give FeedDataset a transform")
        return length, -(-length // _ALIGN) * _ALIGN

    def _run_end(self, start: int, step: int) -> int:
        """Index behind the samples from `start` on that lie `step` bytes apart."""
        offsets = self.offsets
        expected = offsets[start]
        for index in range(start, len(offsets)):
            if offsets[index] != expected:
                return index
            expected += step
        return len(offsets)

    def _rows(self, start: int, end: int, length: int, step: int) -> Bytes:
        import numpy

        return numpy.ndarray((end - start, length), numpy.uint8, self._arena, self.offsets[start], (step, 1))

    def copy(self) -> Batch:
        """The same batch in memory of its own, which stays valid."""
        return _own(self.epoch, self.step, self.ids, self.lengths, self.flags, b"".join(self.views()), self._catalog)

    def __reduce__(self) -> tuple[Any, ...]:
        catalog = keep(self._catalog, self.ids)
        return (_own, (self.epoch, self.step, self.ids, self.lengths, self.flags, b"".join(self.views()), catalog))


def _rebuild_sample(id: int, data: bytes, is_padded: bool, catalog: Catalog) -> Sample:
    return Sample(id, memoryview(data), is_padded, catalog)


def _own(
    epoch: int, step: int, ids: list[int], lengths: list[int], flags: bytes, blob: bytes, catalog: Catalog
) -> Batch:
    offsets: list[int] = []
    at = 0
    for length in lengths:
        offsets.append(at)
        at += length
    return Batch(epoch, step, ids, lengths, offsets, flags, memoryview(blob), catalog)
