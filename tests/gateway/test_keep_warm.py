"""`routing.keep_warm`: a prefix that an engine forgot once is used again before it forgets it anew."""
import json
import time

from harness import wait_until

TOOLS = [{"type": "function", "function": {"name": f"f{i}", "description": "look it up " * 60}}
         for i in range(40)]
SYSTEM = {"role": "system", "content": "You are careful."}
BODY = json.dumps({"model": "m", "stream": False, "max_tokens": 50, "tools": TOOLS,
                   "messages": [SYSTEM, {"role": "user", "content": "hello"}]}).encode()


def counts_nothing_cached(exchange):
    tokens = len(exchange.request.body) // 4
    exchange.answer(body=json.dumps({
        "choices": [{"message": {"content": "abc"}}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 3,
                  "prompt_tokens_details": {"cached_tokens": 0}}}).encode())


def test_a_prefix_that_was_forgotten_is_sent_again_by_the_gateway(engines, gateway):
    engine = engines(script=counts_nothing_cached)
    proxy = gateway(engine, sets=["routing.keep_warm=true"])
    assert proxy.post(BODY).status == 200
    time.sleep(2.5)  # so long the engine keeps what is not used, as the next answer shows
    assert proxy.post(BODY, headers=["Authorization: Bearer client"]).status == 200
    wait_until(lambda: len(engine.requests) == 3)

    refresh = engine.requests[2]
    assert (refresh.method, refresh.target) == ("POST", "/v1/chat/completions")
    assert refresh.header("authorization") is None
    sent = refresh.json()
    assert sent["tools"] == TOOLS and sent["max_tokens"] == 1 and "stream" not in sent
    assert sent["messages"] == [SYSTEM, {"role": "user", "content": "."}]
    assert proxy.metric("hidane_routing_decisions_total", decision="refresh") == 1
    assert proxy.metric("hidane_requests_total") == 2, "it is no client's request"


def test_nothing_is_sent_unless_asked_for(engines, gateway):
    engine = engines(script=counts_nothing_cached)
    proxy = gateway(engine)
    proxy.post(BODY)
    time.sleep(1.5)
    proxy.post(BODY)
    time.sleep(2.5)
    assert len(engine.requests) == 2
