"""What operators see and switch."""
import json
import signal
import subprocess
import threading
import time

import pytest
from harness import DONE, Client, answer_politely, chat, text_event, wait_until


def test_models_are_merged_and_hide_where_they_live(engines, gateway):
    """A27."""
    big, small = engines(2)
    big.models = {"object": "list", "data": [
        {"id": "m", "object": "model", "owned_by": "vllm", "max_model_len": 32768, "vendor": {"a": 1}},
        {"id": "a", "object": "model"}]}
    small.models = {"object": "list", "data": [{"id": "m", "object": "model",
                                                "max_model_len": 8192}]}
    answer = gateway(big, small).get("/v1/models")
    cards = answer.json()["data"]
    assert [c["id"] for c in cards] == ["a", "m"]
    assert cards[1]["max_model_len"] == 8192
    assert cards[1]["vendor"] == {"a": 1} and cards[1]["owned_by"] == "vllm"
    assert b"127.0.0.1" not in answer.raw


def test_a_model_goes_to_the_workers_that_serve_it(engines, gateway):
    first, second = engines(model="one"), engines(model="two")
    proxy = gateway(first, second)
    for i in range(4):
        for model, worker in (("one", "w0"), ("two", "w1")):
            body = json.dumps({"model": model, "messages": [
                {"role": "user", "content": f"{i}"}]}).encode()
            answer = proxy.post(body)
            assert answer.status == 200 and answer.headers["x-hidane-worker"] == worker


def test_ready_and_health(engines, gateway):
    proxy = gateway(engines())
    assert proxy.get("/health").status == 200
    assert proxy.get("/ready").status == 200
    assert proxy.admin("/health").status == 200


def test_workers_show_capacity_and_feedback(engines, gateway):
    engine = engines()
    engine.metrics = ('vllm:cache_config_info{block_size="16",num_gpu_blocks="500"} 1\n'
                      "vllm:num_requests_running 3\n")
    proxy = gateway(engine)
    wait_until(lambda: proxy.workers()[0]["kv_capacity_tokens"] == 8000)
    proxy.post(chat())
    proxy.idle()
    worker = proxy.workers()[0]
    assert worker["name"] == "w0" and worker["models"] == ["m"]
    assert worker["running"] == 3
    assert worker["feedback"] == "on"


def test_an_engine_without_cached_tokens_shows_what_to_switch_on(engines, gateway):
    engine = engines(script=lambda x: x.answer(
        200, b'{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}'))
    proxy = gateway(engine)
    proxy.post(chat())
    proxy.idle()
    assert proxy.workers()[0]["feedback"].startswith("off")


def test_decisions_show_candidates_and_what_came_back(engines, gateway):
    proxy = gateway(*engines(2))
    for i in range(3):
        answer = proxy.post(chat(f"q{i}"))
    decisions = proxy.admin("/hidane/decisions?n=2").json()["decisions"]
    assert len(decisions) == 2
    newest = decisions[0]
    assert newest["request_id"] == answer.headers["x-request-id"]
    assert newest["worker"] == answer.headers["x-hidane-worker"]
    assert newest["usage"]["cached_tokens"] == 40
    assert newest["decision"]["candidates"]


def test_the_policy_is_switched_without_a_restart(engines, gateway):
    first, second = engines(2)
    proxy = gateway(first, second)
    homes = {proxy.post(chat("same")).headers["x-hidane-worker"] for _ in range(4)}
    assert len(homes) == 1
    answer = proxy.admin("/hidane/policy", b'{"policy":"round_robin"}')
    assert answer.status == 200 and answer.json()["policy"] == "round_robin"
    homes = [proxy.post(chat("same")).headers["x-hidane-worker"] for _ in range(4)]
    assert sorted(homes) == ["w0", "w0", "w1", "w1"]
    assert proxy.admin("/hidane/policy").json()["policy"] == "round_robin"


@pytest.mark.parametrize("body", [b'{"policy":"best"}', b"{}", b"nonsense", b'{"policy":3}'])
def test_a_wrong_policy_is_a_400(engines, gateway, body):
    proxy = gateway(engines())
    answer = proxy.admin("/hidane/policy", body)
    assert answer.status == 400 and answer.json()["error"]["param"] == "policy"


def test_explain_decides_without_sending(engines, gateway):
    first, second = engines(2)
    proxy = gateway(first, second)
    home = proxy.post(chat("same")).headers["x-hidane-worker"]
    answer = proxy.admin("/hidane/explain", chat("same"))
    assert answer.status == 200
    assert answer.json()["worker"] == home
    assert len(first.requests) + len(second.requests) == 1
    assert all(w["in_flight"] == 0 for w in proxy.workers())


def test_explain_takes_the_prompt_apart(engines, gateway):
    proxy = gateway(*engines(2))
    tools = [{"type": "function", "function": {"name": f"f{i}", "description": "x" * 400}}
             for i in range(20)]
    body = json.dumps({"model": "m", "tools": tools, "messages": [
        {"role": "system", "content": "s" * 4000}, {"role": "user", "content": "u" * 2000}]})
    told = proxy.admin("/hidane/explain", body.encode()).json()
    prompt = told["prompt"]
    parts = [prompt[part + "_tokens"] for part in ("tools", "system", "conversation")]
    assert sum(parts) == prompt["tokens"] and parts == sorted(parts, reverse=True) and parts[2] > 0
    assert told["decision"] == "placed" and told["policy"] == "prefix"
    assert [c["worker"] for c in told["candidates"] if c["chosen"]] == [told["worker"]]
    others = [w["worker"] for w in told["not_compared"]]
    assert sorted(others + [c["worker"] for c in told["candidates"]]) == ["w0", "w1"]


@pytest.mark.parametrize("path,body,param", [
    ("/v1/nothing", chat("x"), "path"), ("/v1/completions", chat("x"), "prompt"),
    ("/v1/chat/completions", b'{"model":"m"}', "messages")])
def test_explain_names_what_is_wrong(engines, gateway, path, body, param):
    proxy = gateway(engines())
    answer = proxy.admin("/hidane/explain?path=" + path, body)
    assert answer.status == 400 and answer.json()["error"]["param"] == param


def test_config_shows_values_and_origins(engines, gateway):
    proxy = gateway(engines(), sets=["routing.fill=0.5"])
    config = proxy.admin("/hidane/config").json()
    assert config["routing.fill"] == {"value": 0.5, "origin": "flag"}
    assert config["routing.headroom"]["origin"] == "default"


def test_metrics_have_the_documented_names(engines, gateway):
    proxy = gateway(engines())
    proxy.post(chat(stream=True))
    text = proxy.admin("/metrics").body.decode()
    for name in ("hidane_ttft_seconds_bucket", "hidane_cached_tokens_total",
                 "hidane_prompt_tokens_total", "hidane_routing_decisions_total",
                 "hidane_routing_regret_tokens_bucket", "hidane_queue_wait_seconds_bucket",
                 "hidane_shed_total", "hidane_worker_up", "hidane_worker_in_flight"):
        assert name in text, name
    assert proxy.metric("hidane_requests_total") == 1


def test_a_cold_prefix_is_computed_once(engines, gateway):
    """Single flight: followers of a cold prefix wait for its first token."""
    go_on = threading.Event()

    def script(exchange):
        if len(engine.requests) == 1:
            go_on.wait(20)
        answer_politely(exchange)

    engine = engines(script=script)
    proxy = gateway(engine, sets=["routing.single_flight_tokens_min=100",
                                  "routing.prefill_tokens_per_s=100"])
    system = {"role": "system", "content": "long " * 2000}
    body = lambda i: json.dumps({"model": "m", "messages": [
        system, {"role": "user", "content": f"q{i}"}]}).encode()
    clients = [proxy.client().request(body(0))]
    wait_until(lambda: len(engine.requests) == 1)
    clients += [proxy.client().request(body(i)) for i in (1, 2)]
    wait_until(lambda: sum(w["in_flight"] for w in proxy.workers()) == 3)
    time.sleep(0.1)
    assert len(engine.requests) == 1
    go_on.set()
    assert [c.answer().status for c in clients] == [200, 200, 200]


def test_a_restarted_engine_is_empty_at_once(engines, gateway):
    engine = engines()
    engine.metrics = "process_start_time_seconds 1000\n"
    proxy = gateway(engine)
    long = "word " * 3000
    proxy.post(chat(long))
    wait_until(lambda: int(proxy.post(chat(long)).headers["x-hidane-cached-expected"]) > 0)
    engine.metrics = "process_start_time_seconds 2000\n"
    time.sleep(0.3)
    assert proxy.post(chat(long)).headers["x-hidane-cached-expected"] == "0"


def test_sigterm_finishes_streams_and_says_so(engines, gateway):
    """A23."""
    go_on = threading.Event()

    def script(exchange):
        if exchange.request.json().get("stream"):
            exchange.stream_head()
            exchange.chunk(text_event("a"))
            go_on.wait(20)
            exchange.chunk(DONE)
            exchange.end()
        else:
            answer_politely(exchange)

    engine = engines(script=script)
    proxy = gateway(engine)
    streams = [proxy.client().request(chat(f"{i}", stream=True)) for i in range(8)]
    for client in streams:
        client.read_until(b"data:")
    kept = proxy.client()
    assert kept.request(chat("kept")).answer().status == 200
    proxy.terminate()
    wait_until(lambda: proxy.get("/ready").status == 503)
    assert kept.gone()  # idle connections close cleanly
    answer = proxy.post(chat("new connection"))
    assert answer.status == 200 and answer.headers["connection"] == "close"
    go_on.set()
    for client in streams:
        assert client.answer().complete
    assert proxy.process.wait(5) == 0


def test_a_second_sigterm_ends_at_once(engines, gateway):
    engine = engines(script=lambda x: x.wait_gone() and x.close())
    proxy = gateway(engine)
    client = proxy.client().request(chat(stream=True))
    wait_until(lambda: engine.requests)
    proxy.terminate()
    wait_until(lambda: proxy.get("/ready").status == 503)
    proxy.terminate()
    assert proxy.process.wait(2) == 0
    client.close()


def test_a_port_in_use_is_one_clear_line(engines, gateway):
    import os
    engine = engines()
    proxy = gateway(engine)
    result = subprocess.run(
        [os.environ["HIDANE_BINARY"], "gateway", "--upstream", engine.url, "--set",
         f"server.listen=127.0.0.1:{proxy.port}", "--set", "admin.listen=127.0.0.1:0"],
        capture_output=True, text=True, timeout=10, check=False)
    assert result.returncode in (2, 3)
    assert str(proxy.port) in result.stderr
