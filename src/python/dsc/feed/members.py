"""Splits a sample of a tar shard into its members."""

from __future__ import annotations

import io
import re
import tarfile

_META = re.compile("__[^/]*__(/|$)")
"""Names of WebDataset's own metadata."""


class _Bytes(io.RawIOBase):
    """Reads a view as a file, without a copy of it. Zeros follow it up to a whole block, as in the file it is from."""

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._at = 0

    def readinto(self, target: bytearray | memoryview) -> int:  # type: ignore[override]
        part = self._view[self._at : self._at + len(target)]
        target[: len(part)] = part
        count = len(part)
        padding = min(len(target), -(-len(self._view) // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE - self._at) - count
        if padding > 0:
            target[count : count + padding] = bytes(padding)
            count += padding
        self._at += count
        return count

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = (0, self._at, len(self._view))[whence]
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def extension_of(name: str) -> str | None:
    """The extension in a member's name, in lower case. None if WebDataset passes such names over."""
    key, dot, extension = name.rpartition("/")[2].partition(".")
    return extension.lower() if key and dot else None


def split_members(view: memoryview) -> dict[str, memoryview]:
    """The members of a slice of a tar file that begins with a header, by extension, as WebDataset has them.

    The extension is what follows the first dot of the name's last part, in lower case. Members that WebDataset passes
    over are left out.

    Args:
        view: header and contents of neighbouring members, up to the last one's last byte.

    Returns:
        Extension → contents: a slice of `view`, but for sparse members, which are put together.

    Raises:
        tarfile.TarError: the slice is damaged.
    """
    members: dict[str, memoryview] = {}
    with tarfile.TarFile(fileobj=_Bytes(view)) as archive:
        for member in archive:
            extension = extension_of(member.name)
            if not member.isreg() or extension is None or _META.match(member.name):
                continue
            if member.sparse is None:
                data = view[member.offset_data : member.offset_data + member.size]
                if len(data) < member.size:
                    raise tarfile.ReadError(f"{member.name} has {len(data)} of {member.size} bytes")
                members[extension] = data
            else:
                file = archive.extractfile(member)
                assert file is not None  # it is for regular members
                members[extension] = memoryview(file.read())
    return members
