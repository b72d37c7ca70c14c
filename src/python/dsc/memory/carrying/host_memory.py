"""How much host memory there is: the smaller of the machine's and the control group's."""

from __future__ import annotations

import os

CGROUP = "/sys/fs/cgroup"
MEMINFO = "/proc/meminfo"


def free_host_bytes() -> int:
    """Bytes of host memory that are free for this process."""
    limit = _cgroup("memory.max", "memory/memory.limit_in_bytes")
    used = _cgroup("memory.current", "memory/memory.usage_in_bytes")
    free = _meminfo("MemAvailable")
    if limit is not None and used is not None:
        free = min(free, max(0, limit - max(0, used - _page_cache_bytes())))
    return free


def total_host_bytes() -> int:
    """Bytes of host memory that this process can have at most."""
    limit = _cgroup("memory.max", "memory/memory.limit_in_bytes")
    total = _meminfo("MemTotal")
    return total if limit is None else min(total, limit)


def _page_cache_bytes() -> int:
    """Bytes of the control group's memory that hold files, such as the data set: the kernel takes them back at need."""
    for name in ("memory.stat", "memory/memory.stat"):
        try:
            with open(os.path.join(CGROUP, name), encoding="ascii") as file:
                stat = dict(line.split() for line in file)
        except (OSError, ValueError):
            continue
        # The first version counts groups below this one under the names with `total_`.
        return sum(int(stat.get(f"total_{list_}", stat.get(list_, 0))) for list_ in ("inactive_file", "active_file"))
    return 0


def _meminfo(name: str) -> int:
    try:
        with open(MEMINFO, encoding="ascii") as file:
            for line in file:
                if line.startswith(name + ":"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cgroup(*names: str) -> int | None:
    for name in names:
        try:
            with open(os.path.join(CGROUP, name), encoding="ascii") as file:
                text = file.read().strip()
            if text.isdigit() and int(text) < 1 << 60:
                return int(text)
        except OSError:
            continue
    return None
