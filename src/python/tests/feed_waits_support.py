"""Faults that make a trainer wait, as often and as long as a test likes."""

import hashlib
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.parse

from feed_support import ROOT

DSC = [str(ROOT / "node_modules" / ".bin" / "node"), str(ROOT / "bin" / "dsc.js")]


class SlowStore:
    """An S3 server of one bucket that takes its time with each object."""

    def __init__(self, files):
        self.delay = 0.0
        self.is_open = threading.Event()  # until then, no object is given
        self.is_open.set()
        self.busy = 0.0  # seconds from the first listing to the last object, since it was set to 0
        self.listed_at = 0.0
        store = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self):
                self._answer(*self._object(), is_head=True)

            def do_GET(self):
                if "list-type" in self.path or self.path.rstrip("/") == "/bucket":
                    store.note_listing()
                    return self._answer(200, {"content-type": "application/xml"}, _listing(files, self.path))
                store.is_open.wait()
                time.sleep(store.delay)
                store.busy = time.monotonic() - store.listed_at
                self._answer(*self._object())

            def _object(self):
                body = files.get(self.path.split("?")[0].removeprefix("/bucket/"))
                if body is None:
                    return 404, {}, b"<Error><Code>NoSuchKey</Code></Error>"
                headers = {"etag": _etag(body), "accept-ranges": "bytes"}
                asked = self.headers.get("range")
                if asked is None:
                    return 200, headers, body
                first, last = asked.removeprefix("bytes=").split("-")
                end = min(len(body), int(last or len(body)) + 1)
                headers["content-range"] = f"bytes {first}-{end - 1}/{len(body)}"
                return 206, headers, body[int(first) : end]

            def _answer(self, status, headers, body, is_head=False):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if not is_head:
                    self.wfile.write(body)

            def log_message(self, *args):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.place = f"endpoint: '{url}', pathStyle: true, anonymous: true"

    def note_listing(self):
        if self.busy == 0.0:
            self.listed_at = time.monotonic()
            self.busy = 1e-9

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def _etag(body):
    return f'"{hashlib.md5(body).hexdigest()}"'


def _listing(files, path):
    prefix = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query).get("prefix", [""])[0]
    rows = "".join(
        f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
        f"<ETag>{_etag(body)}</ETag><Size>{len(body)}</Size></Contents>"
        for key, body in sorted(files.items())
        if key.startswith(prefix)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>bucket</Name><Prefix>{prefix}</Prefix><KeyCount>{rows.count('<Key>')}</KeyCount>"
        f"<MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
    ).encode()


class SlowLink:
    """Passes connections on to a port; each piece of what comes back is held up."""

    def __init__(self, port):
        self.delay = 0.0
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            for source, target, is_slow in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass_on, args=(source, target, is_slow), daemon=True).start()

    def _pass_on(self, source, target, is_slow):
        try:
            while data := source.recv(1 << 16):
                if is_slow:
                    time.sleep(self.delay)
                target.sendall(data)
        except OSError:
            pass
        for each in (source, target):
            each.close()

    def close(self):
        self._listener.close()


class StorageNode:
    """A `dsc feed storage` behind a slow link."""

    def __init__(self, folder, stripe=None):
        words = [*DSC, "feed", "storage", str(folder), "--listen", "127.0.0.1:0", "--json"]
        self._process = subprocess.Popen(
            words + (["--stripe", stripe] if stripe else []), stdout=subprocess.PIPE, text=True
        )
        self.link = SlowLink(json.loads(self._process.stdout.readline())["port"])
        self.address = f"127.0.0.1:{self.link.port}"

    def close(self):
        self.link.close()
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()


class SlowDisk:
    """Holds up each read of a process, through strace."""

    def __init__(self, pid, seconds):
        delay = f"inject=pread64:delay_exit={round(1e6 * seconds)}"
        self._process = subprocess.Popen(
            ["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=pread64", "-e", delay, "-p", str(pid)],
            stderr=subprocess.DEVNULL,
        )
        while _tracer(pid) == 0 and self._process.poll() is None:
            time.sleep(0.01)

    def close(self):
        self._process.send_signal(signal.SIGINT)
        self._process.wait()


def _tracer(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("TracerPid"))


def may_trace():
    """Whether strace is here and may hold up processes that it has not started, as a feed is."""
    if shutil.which("strace") is None:
        return False
    sleeper = subprocess.Popen(["sleep", "60"])
    disk = SlowDisk(sleeper.pid, 0.001)
    is_traced = _tracer(sleeper.pid) != 0
    disk.close()
    sleeper.kill()
    sleeper.wait()
    return is_traced
