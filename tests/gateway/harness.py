"""A scriptable engine, a raw-bytes client and the gateway as a process: standard library only."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import urllib.request

LIMIT_S = 20.0  # no wait in these tests lasts longer


def wait_until(condition, timeout=LIMIT_S):
    """Polls `condition` until it is true; fails the test when it stays false."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError("waited in vain")


class Request:
    """One request as the engine got it: `head` and `body` are the exact bytes."""

    def __init__(self, head, body, connection):
        self.head, self.body, self.connection = head, body, connection
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = lines[0].split(" ", 2)
        self.headers = [tuple(l.split(": ", 1)) for l in lines[1:] if l]

    def header(self, name):
        values = [v for k, v in self.headers if k.lower() == name.lower()]
        assert len(values) <= 1, f"{name} came {len(values)} times"
        return values[0] if values else None

    def json(self):
        return json.loads(self.body)


class Exchange:
    """What a script does with one request."""

    def __init__(self, sock, request):
        self.sock, self.request = sock, request
        self.keep = True

    def send(self, data):
        self.sock.sendall(data)

    def dribble(self, data):
        """One byte per segment."""
        for i in range(len(data)):
            self.sock.sendall(data[i : i + 1])

    def answer(self, status=200, body=b"{}", headers=()):
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}",
                 "Content-Type: application/json", *headers]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def stream_head(self, *headers):
        lines = ["HTTP/1.1 200 OK", "Content-Type: text/event-stream",
                 "Transfer-Encoding: chunked", *headers]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n")

    def chunk(self, data):
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self):
        self.send(b"0\r\n\r\n")

    def stream(self, data, size=None):
        self.stream_head()
        for i in range(0, len(data), size or len(data)):
            self.chunk(data[i : i + (size or len(data))])
        self.end()

    def close(self):
        self.keep = False

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.keep = False

    def wait_gone(self, timeout=LIMIT_S):
        """True once the other side has closed; bytes that come before are an error."""
        self.sock.settimeout(timeout)
        try:
            return self.sock.recv(1) == b""
        except (ConnectionError, TimeoutError) as error:
            return isinstance(error, ConnectionError)


def event(obj):
    return b"data: " + json.dumps(obj, ensure_ascii=False).encode() + b"\n\n"


def text_event(text):
    return event({"id": "c", "object": "chat.completion.chunk",
                  "choices": [{"index": 0, "delta": {"content": text}}]})


def usage_event(prompt=100, cached=40, completion=3):
    return event({"id": "c", "choices": [], "usage": {
        "prompt_tokens": prompt, "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": cached}}})


DONE = b"data: [DONE]\n\n"


def answer_politely(exchange):
    """The default script: three events, usage if asked, or one JSON answer."""
    try:
        body = exchange.request.json()
    except ValueError:
        body = {}
    if body.get("stream"):
        asked = (body.get("stream_options") or {}).get("include_usage")
        exchange.stream(b"".join(text_event(t) for t in "abc")
                        + (usage_event() if asked else b"") + DONE)
    else:
        exchange.answer(body=json.dumps({
            "choices": [{"message": {"content": "abc"}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 3,
                      "prompt_tokens_details": {"cached_tokens": 40}}}).encode())


class FakeEngine:
    """Listens on a free port, logs every request and plays `script` for those of clients."""

    def __init__(self, model="m", script=answer_politely):
        self.script = script
        self.health_status = 200
        self.models = {"object": "list", "data": [{"id": model, "object": "model"}]}
        self.metrics = ""
        self.requests = []  # of clients; probes are not in it
        self.closed = []    # connection numbers, in the order in which they went
        self.live = {}
        self.port = 0
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=512)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def stop(self):
        """As if killed: refuses connections and resets what is open."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for sock in list(self.live.values()):
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener):
        for number in range(1 << 30):
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.live[number] = sock
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock, number):
        pending = b""
        with contextlib.suppress(OSError, ValueError), sock:
            while True:
                while b"\r\n\r\n" not in pending:
                    data = sock.recv(65536)
                    if not data:
                        raise OSError
                    pending += data
                head, pending = pending.split(b"\r\n\r\n", 1)
                length = re.search(rb"(?im)^content-length: (\d+)\r?$", head + b"\r\n")
                length = int(length.group(1)) if length else 0
                assert not re.search(rb"(?im)^transfer-encoding:", head), head
                while len(pending) < length:
                    data = sock.recv(1 << 20)
                    if not data:
                        raise OSError
                    pending += data
                request = Request(head, pending[:length], number)
                pending = pending[length:]
                exchange = Exchange(sock, request)
                self._play(exchange)
                if not exchange.keep:
                    break
        self.live.pop(number, None)
        self.closed.append(number)

    def _play(self, exchange):
        target = exchange.request.target
        if target == "/health":
            exchange.answer(self.health_status)
        elif target == "/metrics":
            if callable(self.metrics):
                self.metrics(exchange)
            else:
                exchange.answer(body=self.metrics.encode())
        elif target == "/v1/models":
            exchange.answer(body=json.dumps(self.models).encode())
        else:
            self.requests.append(exchange.request)
            self.script(exchange)


class Answer:
    def __init__(self, raw, closed_cleanly):
        self.raw, self.closed_cleanly = raw, closed_cleanly
        head, _, self.payload = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1]) if lines[0] else 0
        self.headers = {k.lower(): v for k, v in (l.split(": ", 1) for l in lines[1:])}
        assert len(self.headers) == len(lines) - 1, f"a header came twice: {lines}"

    @property
    def chunked(self):
        return self.headers.get("transfer-encoding") == "chunked"

    @property
    def complete(self):
        if self.chunked:
            return self.payload.endswith(b"0\r\n\r\n")
        return len(self.payload) == int(self.headers.get("content-length", -1))

    @property
    def body(self):
        if not self.chunked:
            return self.payload
        out, rest = b"", self.payload
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            n = int(size, 16)
            out, rest = out + rest[:n], rest[n + 2 :]
        return out

    def json(self):
        return json.loads(self.body)

    @property
    def error_code(self):
        return self.json()["error"]["code"]


class Client:
    """One connection; sends and receives raw bytes."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending = b""

    def send(self, data):
        self.sock.sendall(data)

    def request(self, body=b"", path="/v1/chat/completions", method="POST", headers=()):
        lines = [f"{method} {path} HTTP/1.1", "Host: gateway", *headers]
        if body or method == "POST":
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return self

    def read_some(self):
        data = self.sock.recv(1 << 18)
        self.pending += data
        return data

    def read_until(self, marker):
        while marker not in self.pending:
            if not self.read_some():
                raise AssertionError(f"closed before {marker}: {self.pending[-300:]}")
        return self.pending

    def answer(self):
        """Reads one answer to its end, or to the end of the connection."""
        cleanly = True
        while not self._whole():
            try:
                if not self.read_some():
                    break
            except ConnectionError:
                cleanly = False
                break
        answer = Answer(self.pending, cleanly)
        self.pending = b""
        return answer

    def _whole(self):
        head, blank, body = self.pending.partition(b"\r\n\r\n")
        if not blank:
            return False
        low = head.lower()
        if b" 204 " in low[:16] or b" 304 " in low[:16]:
            return True
        if b"transfer-encoding: chunked" in low:
            return body.endswith(b"\r\n0\r\n\r\n") or body == b"0\r\n\r\n"
        length = re.search(rb"content-length: (\d+)", low)
        return length is not None and len(body) >= int(length.group(1))

    def gone(self, timeout=LIMIT_S):
        """True when the gateway closes the connection without another byte."""
        self.sock.settimeout(timeout)
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def close(self):
        self.sock.close()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


def chat(text="hi", **fields):
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **fields}
    return json.dumps(body).encode()


class Gateway:
    """The program under test. `sets` are `path.to.key=value`."""

    def __init__(self, *engines, sets=(), args=(), env=None):
        binary = os.environ["HIDANE_BINARY"]
        command = [binary, "gateway", "--set", "server.listen=127.0.0.1:0",
                   "--set", "admin.listen=127.0.0.1:0", "--set", "server.threads=2",
                   "--set", "health.interval_ms=50", "--set", "health.metrics_interval_ms=50"]
        for engine in engines:
            command += ["--upstream", engine.url]
        for item in sets:
            command += ["--set", item]
        self.process = subprocess.Popen([*command, *args], stderr=subprocess.PIPE,
                                        env={**os.environ, **(env or {})})
        self.log = []
        self.raw_log = b""
        threading.Thread(target=self._read_log, daemon=True).start()
        started = wait_until(lambda: self.events("gateway.started") or self._exited())[0]
        self.port, self.admin_port = started["data_port"], started["admin_port"]

    def _exited(self):
        if self.process.poll() is not None:
            raise AssertionError(f"gateway ended with {self.process.returncode}: {self.raw_log}")

    def _read_log(self):
        for line in self.process.stderr:
            self.raw_log += line
            with contextlib.suppress(ValueError):
                self.log.append(json.loads(line))

    def events(self, name):
        return [e for e in list(self.log) if e.get("event") == name]

    def client(self):
        return Client(self.port)

    def post(self, body, **kw):
        """The answer, when the gateway has settled it too: the client may see its last byte first."""
        client = self.client()
        try:
            answer = client.request(body, **kw).answer()
        finally:
            client.close()
        if "x-request-id" in answer.headers:
            wait_until(lambda: answer.headers["x-request-id"] in
                       [e["request_id"] for e in self.events("request.done")])
        return answer

    def get(self, path, admin=False):
        port = self.admin_port if admin else self.port
        client = Client(port)
        try:
            return client.request(path=path, method="GET").answer()
        finally:
            client.close()

    def admin(self, path, body=None):
        client = Client(self.admin_port)
        try:
            method = "GET" if body is None else "POST"
            return client.request(body or b"", path=path, method=method).answer()
        finally:
            client.close()

    def workers(self):
        return self.admin("/hidane/workers").json()["workers"]

    def metric(self, name, **labels):
        """The sum over all samples of `name` that carry `labels`."""
        total = 0.0
        for line in self.admin("/metrics").body.decode().splitlines():
            sample = re.match(r"(\w+)(?:\{(.*)\})? (\S+)$", line)
            if sample and sample.group(1) == name:
                have = dict(re.findall(r'(\w+)="([^"]*)"', sample.group(2) or ""))
                if all(have.get(k) == v for k, v in labels.items()):
                    total += float(sample.group(3))
        return total

    def wait_ready(self, workers=None):
        """Until the given number of workers (default: all) is up."""
        def up():
            views = self.workers()
            healthy = [w for w in views if w["health"] == "up" and w["models"]]
            return len(healthy) == (len(views) if workers is None else workers)
        wait_until(up)
        return self

    def idle(self):
        """Until nothing is in flight: what must hold after every test."""
        wait_until(lambda: all(w["in_flight"] == 0 for w in self.workers()))

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(0.2)
            except subprocess.TimeoutExpired:
                self.process.terminate()
        code = self.process.wait(LIMIT_S)
        assert code == 0, f"exit code {code}: {self.raw_log[-2000:].decode()}"
