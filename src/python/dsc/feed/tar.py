"""Splits a sample of a tar shard into its members."""

_BLOCK = 512


def split_members(view):
    """Extension -> memoryview of the member, for a slice of a tar file that begins with a header."""
    members, at, long_name = {}, 0, None
    while at + _BLOCK <= len(view):
        header = bytes(view[at : at + _BLOCK])
        length = int(header[124:136].rstrip(b"\0 ") or b"0", 8)
        data = view[at + _BLOCK : at + _BLOCK + length]
        kind = header[156:157]
        if kind == b"L":
            long_name = bytes(data).rstrip(b"\0").decode()
        elif kind in (b"0", b"\0"):
            name = long_name or header[:100].rstrip(b"\0").decode()
            members[name.rsplit("/", 1)[-1].partition(".")[2]] = data
            long_name = None
        at += _BLOCK + (length + _BLOCK - 1) // _BLOCK * _BLOCK
    return members
