"""Clients that people really use, through the gateway to a real engine, stream and not.

Each is fetched once into the build folder; without a registry its cases are skipped.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import hidane_process as hidane  # noqa: E402

OPENAI_PYTHON = "openai==3.51.0"
OPENAI_NODE = "openai@7.55.0"
TOOLS = pathlib.Path(os.environ.get("HIDANE_BUILD_DIR", hidane.SOURCE / "build/release")) / "clients"
QUESTION = [{"role": "user", "content": "Say hello in one short sentence."}]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    if not hidane.MODEL.exists():
        pytest.skip(f"no {hidane.MODEL.name}: run tools/fetch_model.sh")
    with hidane.fleet(tmp_path_factory.mktemp("fleet"), engines=2) as (gateway, _):
        yield gateway


def fetch(what, *command):
    """Runs an installer once; skips the test when it can't (offline, no registry)."""
    if os.environ.get("HIDANE_OFFLINE") == "1":
        pytest.skip(f"{what} is not installed and HIDANE_OFFLINE=1")
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    if done.returncode != 0:
        pytest.skip(f"cannot install {what}: {done.stderr.strip()[-200:]}")


@pytest.fixture(scope="module")
def python():
    """An interpreter with the openai package."""
    folder = TOOLS / "python"
    program = folder / "bin/python"
    if not (folder / OPENAI_PYTHON).exists():
        shutil.rmtree(folder, ignore_errors=True)
        fetch("a Python environment", sys.executable, "-m", "venv", folder)
        fetch(OPENAI_PYTHON, program, "-m", "pip", "install", "-q", OPENAI_PYTHON)
        (folder / OPENAI_PYTHON).touch()
    return program


@pytest.fixture(scope="module")
def node_modules():
    """A folder that has openai in node_modules."""
    folder = TOOLS / "node"
    if not shutil.which("node"):
        pytest.skip("node is not installed (Debian packages nodejs and npm)")
    if not (folder / OPENAI_NODE).exists():
        if not shutil.which("npm"):
            pytest.skip("npm is not installed (Debian package npm)")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        fetch(OPENAI_NODE, "npm", "install", "--no-audit", "--no-fund", "--prefix", folder, OPENAI_NODE)
        (folder / OPENAI_NODE).touch()
    return folder


def curl(gateway, body):
    body = {"model": hidane.served_model(gateway.url), **body}
    done = subprocess.run(
        ["curl", "-sS", "--fail-with-body", "-N", "-D", "-", gateway.url + "/v1/chat/completions",
         "-H", "content-type: application/json", "-d", json.dumps(body)],
        capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    head, _, answer = done.stdout.replace("\r\n", "\n").partition("\n\n")
    return head.lower(), answer


def test_curl_gets_a_whole_answer(gateway):
    head, answer = curl(gateway, {"messages": QUESTION, "max_tokens": 8})
    answer = json.loads(answer)
    assert answer["choices"][0]["message"]["content"]
    assert answer["usage"]["prompt_tokens"] > 0
    for name in ("x-hidane-worker", "x-hidane-decision", "x-request-id"):
        assert name in head


def test_curl_gets_a_stream_that_ends_with_done(gateway):
    _, answer = curl(gateway, {"messages": QUESTION, "max_tokens": 8, "stream": True})
    events = [line[6:] for line in answer.splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    assert "".join(c["delta"].get("content") or "" for chunk in chunks for c in chunk["choices"])
    assert all(not chunk.get("usage") for chunk in chunks), "usage was not asked for"


def test_curl_gets_several_choices_and_one_usage(gateway):
    """Greedy: the choices are equal, so that whole and streamed answers can be compared."""
    body = {"messages": QUESTION, "max_tokens": 8, "temperature": 0, "n": 3}
    _, whole = curl(gateway, body)
    whole = json.loads(whole)
    assert [choice["index"] for choice in whole["choices"]] == [0, 1, 2]
    texts = [choice["message"]["content"] for choice in whole["choices"]]
    assert texts[0] and len(set(texts)) == 1
    assert whole["usage"]["completion_tokens"] % 3 == 0

    _, answer = curl(gateway, {**body, "stream": True, "stream_options": {"include_usage": True}})
    events = [line[6:] for line in answer.splitlines() if line.startswith("data: ")]
    chunks = [json.loads(event) for event in events[:-1]]
    streamed, finished = ["", "", ""], [None] * 3
    for choice in (choice for chunk in chunks for choice in chunk["choices"]):
        streamed[choice["index"]] += choice["delta"].get("content") or ""
        finished[choice["index"]] = finished[choice["index"]] or choice["finish_reason"]
    assert streamed == texts
    assert finished == [choice["finish_reason"] for choice in whole["choices"]]
    [usage] = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
    assert usage["prompt_tokens"] == whole["usage"]["prompt_tokens"]
    assert usage["completion_tokens"] == whole["usage"]["completion_tokens"]


def test_openai_python_client(gateway, python):
    run_client([python, HERE / "chat.py"], gateway)


def test_openai_node_client(gateway, node_modules):
    run_client(["node", HERE / "chat.mjs"], gateway, OPENAI_MODULE=str(node_modules))


def run_client(command, gateway, **environment):
    """Each client prints what it saw as one JSON line; see chat.py."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=240,
        env={**os.environ, "OPENAI_BASE_URL": gateway.url + "/v1", "OPENAI_API_KEY": "any", **environment})
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["models"] >= 1
    assert seen["text"]
    assert seen["prompt_tokens"] > 0
    assert seen["stream_text"]
    assert seen["stream_usage_prompt_tokens"] == seen["prompt_tokens"]
    assert seen["stream_text"] == seen["text"], "temperature 0: the same words, streamed or not"
    assert seen["wrong_field_status"] == 400
