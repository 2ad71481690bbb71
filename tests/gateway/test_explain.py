"""`hidane explain`: a decision in words, for three bodies; the last decisions; errors that help."""
import json
import os
import subprocess

import pytest

NOBODY = 1  # a port where nothing listens
TOOLS = [{"type": "function", "function": {"name": f"f{i}", "description": "look it up " * 60}}
         for i in range(40)]
FIRST = {"model": "m", "tools": TOOLS, "messages": [
    {"role": "system", "content": "You are careful."}, {"role": "user", "content": "hello"}]}
NEXT = {**FIRST, "messages": FIRST["messages"] + [
    {"role": "assistant", "content": "hi"}, {"role": "user", "content": "and now?"}]}
SHORT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def explain(proxy, *args, body=None, port=None):
    url = f"http://127.0.0.1:{port or proxy.admin_port}"
    return subprocess.run([os.environ["HIDANE_BINARY"], "explain", "--url", url, *args],
                          input=json.dumps(body) if body else "", capture_output=True, text=True,
                          timeout=20, check=False)


def why(text):
    return next(line for line in text.splitlines() if line.startswith("Why: "))


def test_three_bodies_and_why_each_goes_where_it_goes(engines, gateway):
    behind = engines(3)
    proxy = gateway(*behind)
    new = explain(proxy, "--body", "-", body=FIRST)
    assert new.returncode == 0 and why(new.stdout).endswith("(placed)")
    assert "0 of its tokens are cached there" in new.stdout

    home = proxy.post(json.dumps(FIRST).encode()).headers["x-hidane-worker"]
    again = explain(proxy, "--body", "-", body=NEXT)
    assert again.stdout.startswith(f"This request would go to {home}.")
    assert home in why(again.stdout) and "tools" in again.stdout
    row = next(line.split() for line in again.stdout.splitlines() if line.startswith("->"))
    assert row[1] == home and int(row[2].replace(",", "")) > 1000

    short = explain(proxy, "--body", "-", body=SHORT)
    assert short.returncode == 0 and "1 message in the body" in short.stdout
    assert all(worker in short.stdout for worker in ("w0", "w1", "w2"))
    assert sum(len(engine.requests) for engine in behind) == 1, "explaining sends nothing"


def test_the_last_decisions_show_what_was_expected_and_what_came(engines, gateway):
    proxy = gateway(engines())
    assert explain(proxy, "--last", "5").stdout == "No request has been routed yet.\n"
    for _ in range(3):
        proxy.post(json.dumps(FIRST).encode())
    out = explain(proxy, "--last", "2").stdout.splitlines()
    assert out[0].split()[:3] == ["request", "worker", "why"]
    assert [line.split()[1] for line in out[1:3]] == ["w0", "w0"]
    assert out[1].split()[6] == "40", "what the engine said was cached"
    assert len(json.loads(explain(proxy, "--last", "2", "--json").stdout)["decisions"]) == 2


@pytest.mark.parametrize("body,wrong", [
    ({"model": "other", "messages": []}, 'no model "other" here'),
    ({"model": "m"}, "messages is missing")])
def test_a_body_that_no_engine_would_get_says_what_is_wrong(engines, gateway, body, wrong):
    told = explain(gateway(engines()), "--body", "-", body=body)
    assert told.returncode == 2 and told.stderr == f"hidane: the body on stdin: {wrong}\n"


def test_errors_say_what_to_do(engines, gateway, tmp_path):
    proxy = gateway(engines())
    data = explain(proxy, "--last", "1", port=proxy.port)
    assert data.returncode == 3 and "--url is the gateway's admin listener" in data.stderr
    nobody = explain(proxy, "--last", "1", port=NOBODY)
    assert nobody.returncode == 3 and "--url is the gateway's admin listener" in nobody.stderr
    missing = explain(proxy, "--body", str(tmp_path / "no.json"))
    assert missing.returncode == 2 and "cannot read" in missing.stderr
    nothing = explain(proxy)
    assert nothing.returncode == 2 and "--body FILE or --last N" in nothing.stderr
