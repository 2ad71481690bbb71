"""Starts `hidane` processes for whole-process tests and ends them all, whatever happens."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.request

SOURCE = pathlib.Path(os.environ.get("HIDANE_SOURCE_DIR", pathlib.Path(__file__).parents[1]))
BINARY = os.environ.get("HIDANE_BINARY", str(SOURCE / "build/release/hidane"))
MODEL = SOURCE / "models/SmolLM2-135M-Instruct.Q4_1.gguf"


class Process:
    """One child. `url` (and `admin`, for a gateway) come from its first line on stdout."""

    def __init__(self, *args, log):
        self.args, self.log = [BINARY, *map(str, args)], log
        self.child, self.url, self.admin = None, None, None
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(self.args, stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.child.stdout.readline()
        found = re.match(r"listening on (\S+)(?: admin (\S+))?", line)
        if not found:
            self.child.wait()
            raise RuntimeError(f"{self.args[1]} said {line!r}; log: {pathlib.Path(self.log).read_text()[-2000:]}")
        self.url, self.admin = found.groups()

    @property
    def port(self):
        return int(self.url.rsplit(":", 1)[1])

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()

    def restart(self):
        """The same process again, on the same port."""
        self.args[self.args.index("--listen") + 1] = f"127.0.0.1:{self.port}"
        self.start()

    def stop(self):
        if self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        self.child.stdout.close()


@contextlib.contextmanager
def fleet(folder, engines=2, kv_tokens=8192, gateway_args=(), engine_args=()):
    """(gateway, [engine...]) with the small model, one thread each."""
    started = []
    try:
        for i in range(engines):
            started.append(Process("engine", "--model", MODEL, "--listen", "127.0.0.1:0", "--threads", 1,
                                   "--kv-tokens", kv_tokens, *engine_args,
                                   log=folder / f"engine-{i}.log"))
        upstreams = [word for engine in started for word in ("--upstream", engine.url)]
        started.append(Process("gateway", "--listen", "127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0",
                               *upstreams, *gateway_args, log=folder / "gateway.log"))
        served_model(started[-1].url)  # the gateway has asked its engines
        yield started[-1], started[:-1]
    finally:
        for process in reversed(started):
            process.stop()


def call(url, body=None, timeout=60):
    """JSON of a GET, or of a POST when there is a body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.loads(answer.read())


def served_model(url):
    """The id of the one model that `url` serves; a gateway learns it from its engines first."""
    models = []
    wait_until(lambda: models.extend(call(url + "/v1/models")["data"]) or models)
    return models[0]["id"]


def wait_until(condition, seconds=30):
    """True as soon as `condition()` is; False when the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False
