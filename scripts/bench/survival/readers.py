"""Reads random files of a folder in many threads, and tells what failed and how long the longest read took.

    python3 readers.py FOLDER READERS SECONDS

Half of the readers keep one file open and read it at random; the others open a file for each read. A reader that
failed tries again after 50 ms. Prints "ready" once each has read, and a line of JSON at the end.
"""

import contextlib
import json
import os
import random
import sys
import threading
import time

folder, readers, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
files = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
CHUNK = 65536
ready = threading.Barrier(readers + 1)
state = [{"failed": 0, "longest": 0.0, "last": None} for _ in range(readers)]
ends = [0.0]


def open_and_read(chance: random.Random) -> None:
    with open(chance.choice(files), "rb", buffering=0) as file:
        while file.read(CHUNK):
            pass


def read_held(file: int, chance: random.Random) -> None:
    os.pread(file, CHUNK, chance.randrange(max(1, os.fstat(file).st_size - CHUNK)))


def work(index: int) -> None:
    chance = random.Random(index)
    own = state[index]
    held = os.open(chance.choice(files), os.O_RDONLY) if index % 2 == 0 else None
    read = (lambda: open_and_read(chance)) if held is None else (lambda: read_held(held, chance))
    read()
    own["last"] = time.monotonic()
    ready.wait()
    own["last"] = time.monotonic()
    while time.monotonic() < ends[0]:
        try:
            read()
            now = time.monotonic()
            own["longest"] = max(own["longest"], now - own["last"])
            own["last"] = now
            time.sleep(0.02)
            own["last"] = time.monotonic()
        except OSError:
            own["failed"] += 1
            time.sleep(0.05)


ends[0] = time.monotonic() + 3600
for index in range(readers):
    threading.Thread(target=work, args=(index,), daemon=True).start()
ready.wait()
ends[0] = time.monotonic() + seconds
print("ready", flush=True)
time.sleep(seconds + 1)
now = ends[0]
told = {
    "failed": sum(one["failed"] for one in state),
    "longest": max(max(one["longest"], now - one["last"]) for one in state),
    # Without a good read in the last fifth of the time.
    "broken": sum(now - one["last"] > seconds / 5 for one in state),
}
with contextlib.suppress(BrokenPipeError):  # the benchmark may have been ended
    print(json.dumps(told), flush=True)
os._exit(0)  # a thread may hang in a dead mount
