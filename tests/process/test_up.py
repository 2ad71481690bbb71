"""`hidane up`: starts, serves, and leaves no process behind, whatever ends it."""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import hidane_process as hidane  # noqa: E402

pytestmark = pytest.mark.skipif(not hidane.MODEL.exists(),
                                reason=f"no {hidane.MODEL.name}: run tools/fetch_model.sh")


class Up:
    def __init__(self):
        self.process = subprocess.Popen(
            [hidane.BINARY, "up", "--no-demo", "--engines", "2", "--port", "0", "--model", hidane.MODEL],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.gateway = None
        for line in self.process.stdout:
            found = re.search(r"gateway +(http://\S+)", line)
            self.gateway = found.group(1) if found else self.gateway
            if "max_tokens" in line:  # the curl example is the last thing it says
                break
        self.children = children_of(self.process.pid)


def children_of(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def up():
    started = Up()
    yield started
    started.process.kill()  # takes its children along: that is what is tested below


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_it(up, ending):
    assert len(up.children) == 3, "two engines and a gateway"
    answer = hidane.call(up.gateway + "/v1/chat/completions",
                         {"model": hidane.served_model(up.gateway), "max_tokens": 4,
                          "messages": [{"role": "user", "content": "Hello"}]})
    assert answer["usage"]["completion_tokens"] >= 1
    os.kill(up.process.pid, ending)
    code = up.process.wait(30)
    assert code == (0 if ending != signal.SIGKILL else -9)
    assert hidane.wait_until(lambda: not any(map(alive, up.children)), 10)


def run(*args):
    done = subprocess.run([hidane.BINARY, *map(str, args)], capture_output=True, text=True, timeout=120)
    said = [line for line in done.stderr.splitlines() if line.startswith("hidane: ")]
    return done.returncode, said


def test_a_port_in_use_is_one_clear_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = run("up", "--no-demo", "--engines", 1, "--port", port, "--model", hidane.MODEL)
        assert (code, len(said)) == (3, 1)
        assert str(port) in said[0] and "--port" in said[0]


@pytest.mark.parametrize("command", ["up", "engine"])
def test_a_model_that_is_missing_or_none_is_one_clear_line(command, tmp_path):
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"not a model" * 100)
    for path in (tmp_path / "absent.gguf", wrong):
        code, said = run(command, "--model", path)
        assert code in (2, 3)
        assert len(said) == 1
        assert "--model" in said[0]


def test_a_wrong_flag_is_usage():
    assert run("up", "--engines", 0)[0] == 2
    assert run("engine")[0] == 2
    assert run("nonsense")[0] == 2
