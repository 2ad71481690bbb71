"""kill -9 of one engine under `hidane load`: what may be lost, what may not, and the way back."""
import json
import pathlib
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import hidane_process as hidane  # noqa: E402

STATIC, OUT, CLIENTS = 200, 24, 4


def load_command(gateway, requests, seed, json_path, tenants=4):
    return [hidane.BINARY, "load", "--url", gateway.url, "--tenants", str(tenants), "--static-tokens",
            str(STATIC), "--own-tokens", "20", "--output-tokens", str(OUT), "--ignore-eos", "--requests",
            str(requests), "--concurrency", str(CLIENTS), "--seed", str(seed), "--warmup", "1", "--json",
            str(json_path)]


def row_of(path):
    return json.loads(pathlib.Path(path).read_text())["rows"][0]


def test_only_streams_under_way_are_lost_and_hits_come_back(tmp_path, record_property):
    if not hidane.MODEL.exists():
        pytest.skip(f"no {hidane.MODEL.name}: run tools/fetch_model.sh")
    with hidane.fleet(tmp_path, engines=2) as (gateway, engines):
        during = tmp_path / "during.json"
        load = subprocess.Popen(load_command(gateway, 60, 1, during), stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        victim = engines[0]
        assert hidane.wait_until(lambda: answered(victim) >= 6, 120), "the load never reached it"
        victim.kill()
        assert load.wait(180) == 0
        row = row_of(during)
        kinds = row["errors_by_kind"]
        # A request without a byte yet goes to the other engine; a stream under way gets an error
        # event. No client sees a refusal, a broken connection or a stream that just stops.
        assert set(kinds) <= {"error_event"}, kinds
        assert row["errors"] <= CLIENTS
        assert row["requests"] == 60

        victim.restart()
        assert hidane.wait_until(lambda: all_take_requests(gateway), 60), "the gateway never took it back"
        after = tmp_path / "after.json"
        subprocess.run(load_command(gateway, 80, 1, after), check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        row_after = row_of(after)
        assert row_after["errors"] == 0
        figures = {"errors_during": kinds, "hit_during": row["hit_ratio"], "hit_after": row_after["hit_ratio"]}
        print(figures)
        record_property("figures", json.dumps(figures))
        # Blocks are whole: of a prompt of some 220 tokens the last one or two are its own.
        assert row_after["hit_ratio"] >= 0.75


def answered(engine):
    """Requests that this engine has finished, by its own count."""
    import urllib.request
    with urllib.request.urlopen(engine.url + "/metrics", timeout=5) as page:
        text = page.read().decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
               if line.startswith("vllm:request_success_total"))


def all_take_requests(gateway):
    """Up, or half open: back for the first real request, whose end decides."""
    workers = hidane.call(gateway.admin + "/hidane/workers")
    return all(worker["health"] in ("up", "half_open") for worker in workers["workers"])
