"""A central node that does not answer: how long it is waited for, and what is no address of one."""

import http.server
import threading
import time

import pytest

pytest.importorskip("torch")

from dsc.params import ParamsError  # noqa: E402
from dsc.params.server import Server  # noqa: E402


@pytest.fixture
def answer_with():
    """Starts a server; `answer(handler, call)` deals with its calls, numbered from 0."""
    servers = []

    def start(answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            calls = 0

            def do_GET(self):
                call, Handler.calls = Handler.calls, Handler.calls + 1
                answer(self, call)

            def say(self, status, body):
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words):
                pass

        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{servers[-1].server_address[1]}"
        return Server(url, token=None, job="job", patience_seconds=0.3)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_patience_begins_when_the_server_is_gone_however_long_it_took_to_answer_before(answer_with):
    def answer(handler, call):
        if call == 0:
            time.sleep(0.5)  # as a pull that waits for other ranks; then it is killed
        else:
            handler.say(200, b'{"version": 7}')

    assert answer_with(answer).call("GET", "/v1/status") == {"version": 7}


def test_a_server_that_is_always_stopping_is_given_up(answer_with):
    body = b'{"error": {"reason": "aborted", "message": "the server is stopping"}}'
    server = answer_with(lambda handler, call: handler.say(410, body))
    with pytest.raises(ParamsError, match="does not answer: the server is stopping"):
        server.call("GET", "/v1/status")


@pytest.mark.parametrize("url", ["gpu-1:7272", "127.0.0.1:7272", "https://gpu-1:7272", "http://:7272"])
def test_what_is_no_address_is_refused_at_once(url):
    with pytest.raises(ValueError, match="expected http://host:port"):
        Server(url, token=None, job="job", patience_seconds=30)


@pytest.mark.parametrize("body", [b"<html>", b'{"error": "no such path"}', b"[]"])
def test_what_answers_and_is_no_central_node_is_named(answer_with, body):
    server = answer_with(lambda handler, call: handler.say(404, body))
    with pytest.raises(ParamsError, match=r"127\.0\.0\.1:\d+ answers 404 and is no central node"):
        server.call("GET", "/v1/status")


def test_a_proxy_that_has_no_server_for_a_moment_is_waited_for(answer_with):
    server = answer_with(lambda handler, call: handler.say(*((200, b"{}") if call else (503, b"<html>"))))
    assert server.call("GET", "/v1/status") == {}
