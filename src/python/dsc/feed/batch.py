"""What a client receives: where the samples of a batch lie in the shared arena."""

_ALIGN = 64  # samples begin at multiples of it in the arena

class Sample:
    """One sample. `data` is a read-only view that is valid until the next batch is asked for (see `copy=True`)."""

    __slots__ = ("id", "data", "is_padded", "_name_of")

    def __init__(self, id, data, is_padded, name_of):
        self.id = id
        self.data = data
        self.is_padded = is_padded
        self._name_of = name_of

    @property
    def name(self):
        """Path of the sample inside the dataset (for tar shards: name of the member, or the key of its group)."""
        return self._name_of(self.id)

    def fields(self):
        """Members of a sample of a tar shard, by extension: {'jpg': view, 'cls': view}."""
        from .tar import split_members

        return split_members(self.data)


class Batch:
    """A batch: `ids`, and a view of each sample's bytes. Iterating gives samples."""

    __slots__ = ("epoch", "step", "ids", "lengths", "offsets", "flags", "_arena", "_name_of")

    def __init__(self, epoch, step, ids, lengths, offsets, flags, arena, name_of):
        self.epoch = epoch
        self.step = step
        self.ids = ids
        self.lengths = lengths
        self.offsets = offsets
        self.flags = flags
        self._arena = arena
        self._name_of = name_of

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        at = self.offsets[index]
        view = self._arena[at : at + self.lengths[index]]
        return Sample(self.ids[index], view, bool(self.flags[index]), self._name_of)

    def __iter__(self):
        return (self[index] for index in range(len(self.ids)))

    def views(self):
        """One read-only memoryview per sample."""
        arena = self._arena
        return [arena[at : at + length] for at, length in zip(self.offsets, self.lengths)]

    def array(self):
        """A numpy array [samples, bytes] of uint8, valid until the next batch is asked for.

        Where the samples lie side by side in the arena it is a read-only view; otherwise it is a copy.
        All lengths must be equal.
        """
        length, step = self._row()
        if self._run_end(0, step) == len(self.offsets):
            return self._rows(0, len(self.offsets), length, step)
        return self.stack()

    def stack(self):
        """A numpy array [samples, bytes] of uint8 in memory of its own: the one copy on the way to a tensor. All lengths must be equal."""
        import numpy

        length, step = self._row()
        stacked = numpy.empty((len(self.offsets), length), dtype=numpy.uint8)
        at = 0
        while at < len(self.offsets):  # neighbours in the arena are copied together
            end = self._run_end(at, step)
            stacked[at:end] = self._rows(at, end, length, step)
            at = end
        return stacked

    def _row(self):
        """The length of all samples, and what neighbours in the arena are apart."""
        length = self.lengths[0]
        if self.lengths.count(length) != len(self.lengths):
            raise ValueError("samples of different lengths cannot be stacked; give FeedDataset a transform")
        return length, -(-length // _ALIGN) * _ALIGN

    def _run_end(self, start, step):
        """Index behind the samples from `start` on that lie `step` bytes apart."""
        offsets = self.offsets
        expected = offsets[start]
        for index in range(start, len(offsets)):
            if offsets[index] != expected:
                return index
            expected += step
        return len(offsets)

    def _rows(self, start, end, length, step):
        import numpy

        return numpy.ndarray((end - start, length), numpy.uint8, self._arena, self.offsets[start], (step, 1))

    def copy(self):
        """The same batch in memory of its own, which stays valid."""
        return _own(self.epoch, self.step, self.ids, self.lengths, self.flags, b"".join(self.views()), self._name_of)

    def __reduce__(self):
        names = {id: self._name_of(id) for id in self.ids}
        return (_rebuild, (self.epoch, self.step, self.ids, self.lengths, self.flags, b"".join(self.views()), names))


def _rebuild(epoch, step, ids, lengths, flags, blob, names):
    return _own(epoch, step, ids, lengths, flags, blob, names.__getitem__)


def _own(epoch, step, ids, lengths, flags, blob, name_of):
    offsets, at = [], 0
    for length in lengths:
        offsets.append(at)
        at += length
    return Batch(epoch, step, ids, lengths, offsets, flags, memoryview(blob), name_of)
