"""kill -9 of one engine under `hidane load`: what may be lost, what may not, and the way back.

As a program it runs the full form (the demo's fleet) and prints its figures:

    /usr/bin/python3 tests/process/test_kill_engine.py
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import typing
import urllib.request

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import hidane_process as hidane  # noqa: E402


class Form(typing.NamedTuple):
    engines: int
    tenants: int
    static_tokens: int
    clients: int
    requests: int
    hit_after: float  # at least, once the engine is back


# Blocks are whole: the shorter the prompt, the more of it lies in blocks of its own.
SHORT = Form(engines=2, tenants=4, static_tokens=200, clients=4, requests=60, hit_after=0.80)
FULL = Form(engines=4, tenants=16, static_tokens=1000, clients=8, requests=120, hit_after=0.90)


def load(form, gateway, row_path):
    return subprocess.Popen(
        [hidane.BINARY, "load", "--url", gateway.url, "--ignore-eos", "--own-tokens", "20",
         "--output-tokens", "24", "--tenants", str(form.tenants), "--static-tokens",
         str(form.static_tokens), "--concurrency", str(form.clients), "--requests", str(form.requests),
         "--json", str(row_path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def metric(engine, name):
    """Sum over the series of one metric of an engine."""
    with urllib.request.urlopen(engine.url + "/metrics", timeout=5) as page:
        lines = page.read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def under_way(form, engine):
    """The engine is past calibration and warm-up and computes requests right now."""
    past = 2 + 2 * form.tenants // form.engines
    return (metric(engine, "vllm:request_success_total") > past
            and metric(engine, "vllm:num_requests_running") > 0)


def takes_requests(gateway):
    """Every engine is up, or half open: back for the first real request, whose end decides."""
    workers = hidane.call(gateway.admin + "/hidane/workers")["workers"]
    return all(worker["health"] in ("up", "half_open") for worker in workers)


def kill_and_return(form, folder):
    """Rows of `hidane load`: while an engine is killed, and after it has come back."""
    with hidane.fleet(folder, engines=form.engines) as (gateway, engines):
        during = load(form, gateway, folder / "during.json")
        assert hidane.wait_until(lambda: under_way(form, engines[0]), 200), "the load never reached it"
        engines[0].kill()
        assert during.wait(400) == 0
        engines[0].restart()
        assert hidane.wait_until(lambda: takes_requests(gateway), 60), "it never came back"
        assert load(form, gateway, folder / "after.json").wait(400) == 0
    return [json.loads((folder / name).read_text())["rows"][0] for name in ("during.json", "after.json")]


def check(form, during, after):
    # A request without a byte yet goes to another engine; a stream under way gets an error event
    # and no [DONE]. No client sees a refusal, a broken connection or a stream that just stops.
    assert set(during["errors_by_kind"]) <= {"error_event"}, during
    assert during["errors"] <= form.clients
    assert during["requests"] == form.requests
    assert after["errors"] == 0
    assert after["hit_ratio"] >= form.hit_after, after


def test_only_streams_under_way_are_lost_and_hits_come_back(tmp_path):
    if not hidane.MODEL.exists():
        pytest.skip(f"no {hidane.MODEL.name}: run tools/fetch_model.sh")
    check(SHORT, *kill_and_return(SHORT, tmp_path))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        rows = kill_and_return(FULL, pathlib.Path(scratch))
    for name, row in zip(("engine killed", "engine back"), rows):
        print(f"{name}: {row['requests']} requests, lost {row['errors_by_kind'] or 'none'}, "
              f"hit {row['hit_ratio']:.3f}, p99 TTFT {row['ttft_p99_s']:.2f} s")
    check(FULL, *rows)
