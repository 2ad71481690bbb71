"""Engines that die, lie, hang or cut, and clients that leave."""
import json
import threading
import time

import pytest
from harness import (DONE, Client, answer_politely, chat, text_event, wait_until)


def three_events_then(end):
    def script(exchange):
        exchange.stream_head()
        for text in "abc":
            exchange.chunk(text_event(text))
        time.sleep(0.05)
        end(exchange)
    return script


def reset(exchange):
    exchange.reset()


def close(exchange):
    exchange.close()


def half_a_chunk(exchange):
    exchange.send(b"ff\r\ndata: {")
    exchange.close()


def bad_chunk_size(exchange):
    exchange.send(b"zz\r\nxx\r\n")
    exchange.close()


def assert_broken_off(answer):
    """A9: the text so far, one error event, no [DONE], no terminating chunk."""
    assert answer.status == 200
    assert not answer.complete
    events = [e for e in answer.body.split(b"\n\n") if e]
    assert events[:3] == [text_event(t).strip() for t in "abc"]
    assert b"[DONE]" not in answer.body and b"finish_reason" not in answer.body
    last = events[-1]
    assert last.startswith(b"data: ")
    error = json.loads(last[6:])["error"]
    assert error["code"] and error["type"] == "server_error"
    assert len([e for e in events if b'"error"' in e]) == 1


@pytest.mark.parametrize("end", [reset, close, half_a_chunk, bad_chunk_size])
def test_a_cut_stream_ends_with_an_error_event(engines, gateway, end):
    """A9 and A15: and nobody starts the answer anew."""
    first, second = engines(2, script=three_events_then(end))
    proxy = gateway(first, second)
    answer = proxy.post(chat(stream=True))
    assert_broken_off(answer)
    assert len(first.requests) + len(second.requests) == 1
    assert proxy.metric("hidane_upstream_cut_total") == 1


def test_a_cut_answer_with_a_length_is_not_made_whole(engines, gateway):
    """A9c: Content-Length longer than what comes."""
    def script(exchange):
        exchange.send(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n'
                      b'Content-Type: application/json\r\n\r\n{"half":')
        exchange.close()

    answer = gateway(engines(script=script)).post(chat())
    assert not answer.complete or answer.status == 502


def test_silence_within_a_stream_ends_it(engines, gateway):
    engine = engines(script=three_events_then(lambda x: x.wait_gone()))
    answer = gateway(engine, sets=["timeouts.stream_idle_ms=200"]).post(chat(stream=True))
    assert_broken_off(answer)


def test_silence_before_the_first_byte_is_a_504(engines, gateway):
    engine = engines(script=lambda x: x.wait_gone() and x.close())
    proxy = gateway(engine, sets=["timeouts.first_byte_ms=200"])
    answer = proxy.post(chat())
    assert (answer.status, answer.error_code) == (504, "upstream_timeout")
    assert len(engine.requests) == 1
    wait_until(lambda: engine.closed)


def test_a_refused_connection_fails_over_and_the_next_goes_straight(engines, gateway):
    """A19: the home of a prefix is dead."""
    first, second = engines(2)
    proxy = gateway(first, second, sets=["health.interval_ms=10000"])
    home = proxy.post(chat("same")).headers["x-hidane-worker"]
    dead, alive = (first, second) if home == "w0" else (second, first)
    dead.stop()
    answer = proxy.post(chat("same"))
    assert answer.status == 200 and answer.headers["x-hidane-worker"] != home
    before = proxy.metric("hidane_failovers_total")
    assert proxy.post(chat("same")).status == 200
    assert proxy.metric("hidane_failovers_total") == before


def test_a_worker_that_comes_back_is_used_again(engines, gateway):
    first, second = engines(2)
    proxy = gateway(first, second)
    first.stop()
    wait_until(lambda: [w["health"] for w in proxy.workers()] != ["up", "up"])
    first.start()
    wait_until(lambda: [w["health"] for w in proxy.workers()] != ["down", "up"])
    second.stop()
    wait_until(lambda: proxy.post(chat(str(time.time()))).status == 200)


@pytest.mark.parametrize("cut", [reset, close])
def test_a_connection_that_dies_unanswered_fails_over_once(engines, gateway, cut):
    """A poison prompt meets two engines at most, however often it comes."""
    first, second, third = engines(3, script=cut)
    proxy = gateway(first, second, third)
    answer = proxy.post(chat("poison"))
    assert answer.status == 502
    assert len(first.requests + second.requests + third.requests) == 2
    proxy.post(chat("poison"))
    assert len(first.requests + second.requests + third.requests) <= 3


def test_a_fast_503_fails_over_with_the_same_body(engines, gateway):
    engine_of = {}

    def script(exchange):
        if not engine_of:
            engine_of["sick"] = exchange.request
            exchange.answer(503, b'{"error":{"message":"loading"}}')
        else:
            answer_politely(exchange)

    first, second = engines(2, script=script)
    body = chat("x" * 100_000)
    assert gateway(first, second).post(body).status == 200
    assert [r.body for r in first.requests + second.requests] == [body, body]


@pytest.mark.parametrize("status", [400, 408, 422, 429, 500])
def test_other_errors_are_answers(engines, gateway, status):
    first, second = engines(2, script=lambda x: x.answer(status, b'{"error":{"message":"x"}}'))
    answer = gateway(first, second).post(chat())
    assert answer.status == status
    assert len(first.requests) + len(second.requests) == 1


def test_client_errors_never_eject_a_worker(engines, gateway):
    """A16."""
    engine = engines(script=lambda x: x.answer(400, b'{"error":{"message":"too long"}}'))
    proxy = gateway(engine)
    for i in range(50):
        assert proxy.post(chat(f"big {i}")).status == 400
    assert proxy.workers()[0]["health"] == "up"
    engine.script = answer_politely
    assert proxy.post(chat()).status == 200


def test_a_hung_engine_does_not_slow_the_others(engines, gateway):
    """A17."""
    hung, fine = engines(), engines()
    hung.script = lambda x: x.wait_gone() and x.close()
    proxy = gateway(hung, fine, sets=["routing.policy=round_robin",
                                      "timeouts.first_byte_ms=1000"])
    answers = [None] * 20

    def post(i):
        started = time.monotonic()
        answers[i] = (proxy.post(chat(f"r{i}")), time.monotonic() - started)

    threads = [threading.Thread(target=post, args=(i,)) for i in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    good = [s for a, s in answers if a.status == 200]
    assert len(good) == len(fine.requests) and max(good) < 0.9
    assert all(a.status in (200, 504) for a, _ in answers)


def test_no_backend_and_unknown_model_are_told_apart(engines, gateway):
    """A22."""
    engine = engines()
    proxy = gateway(engine)
    unknown = proxy.post(b'{"model":"other","messages":[{"role":"user","content":"x"}]}')
    assert (unknown.status, unknown.error_code) == (404, "not_found")
    assert unknown.json()["error"]["param"] == "model"
    engine.stop()
    wait_until(lambda: proxy.workers()[0]["health"] == "down")
    none = proxy.post(chat())
    assert (none.status, none.error_code) == (503, "no_backend")
    assert 1 <= int(none.headers["retry-after"]) <= 55
    assert proxy.get("/ready").status == 503
    assert proxy.get("/health").status == 200


def test_an_engine_that_starts_later_is_found(engines, gateway):
    engine = engines()
    engine.stop()
    proxy = gateway(engine, ready=False)
    assert proxy.post(chat()).status == 503
    engine.start()
    proxy.wait_ready()
    assert proxy.post(chat()).status == 200


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("leave", [Client.close, Client.reset])
def test_a_client_that_leaves_frees_the_engine_at_once(engines, gateway, stream, leave):
    """A2."""
    gone = threading.Event()

    def script(exchange):
        if stream:
            exchange.stream_head()
            exchange.chunk(text_event("a"))
        if exchange.wait_gone():
            gone.set()
        exchange.close()

    engine = engines(script=script)
    proxy = gateway(engine)
    client = proxy.client().request(chat(stream=stream))
    if stream:
        client.read_until(b"data:")
    wait_until(lambda: engine.requests)
    leave(client)
    assert gone.wait(1.0)
    proxy.idle()
    wait_until(lambda: proxy.metric("hidane_client_gone_total") == 1)
    assert proxy.workers()[0]["health"] == "up"


def test_load_counts_until_the_stream_ends(engines, gateway):
    """A6."""
    end = threading.Event()

    def script(exchange):
        if exchange.request.json().get("stream"):
            exchange.stream_head()
            exchange.chunk(text_event("a"))
            end.wait(20)
            exchange.end()
        else:
            answer_politely(exchange)

    first, second = engines(2, script=script)
    proxy = gateway(first, second, sets=["routing.policy=round_robin"])
    clients = [proxy.client().request(chat(f"s{i}", stream=True)) for i in range(4)]
    for client in clients:
        client.read_until(b"data:")
    assert sum(w["in_flight"] for w in proxy.workers()) == 4
    end.set()
    for client in clients:
        client.answer()
    proxy.idle()


@pytest.mark.parametrize("metrics", [
    lambda x: x.wait_gone(10), lambda x: x.answer(500), lambda x: x.answer(200, b"\xff\x00{{{"),
    lambda x: x.answer(200, b"vllm:num_requests_running NaN\n"), lambda x: x.reset()],
    ids=["hangs", "fails", "garbage", "nan", "resets"])
def test_broken_telemetry_never_stops_dispatch(engines, gateway, metrics):
    engine = engines()
    engine.metrics = metrics
    proxy = gateway(engine, sets=["health.timeout_ms=300"])
    for i in range(5):
        assert proxy.post(chat(str(i))).status == 200
    assert proxy.workers()[0]["health"] == "up"


HOSTILE = {
    "both_framings": b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
    "two_lengths": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "bad_length": b"Content-Length: +2\r\n\r\n{}",
    "space_before_colon": b"X-Y : 1\r\nContent-Length: 2\r\n\r\n{}",
    "huge_head": b"X-Y: " + b"x" * (1 << 20) + b"\r\nContent-Length: 2\r\n\r\n{}",
    "not_http": None,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_engine_is_a_502(engines, gateway, kind):
    """List H12."""
    def script(exchange):
        head = b"HTTP/1.1 200 OK\r\n" + HOSTILE[kind] if HOSTILE[kind] else b"SSH-2.0-x\r\n\r\n"
        exchange.send(head)
        exchange.close()

    proxy = gateway(engines(script=script))
    answer = proxy.post(chat())
    assert answer.status == 502
    assert answer.error_code == "bad_upstream"


def test_a_body_after_the_answer_poisons_no_connection(engines, gateway):
    """List H12, H14."""
    first = []

    def script(exchange):
        if not first:
            first.append(1)
            exchange.answer(200, b"{}")
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
        else:
            answer_politely(exchange)

    client = gateway(engines(script=script), sets=["server.threads=1"]).client()
    assert client.request(chat("1")).answer().body == b"{}"
    time.sleep(0.05)
    for _ in range(3):
        assert b"poison" not in client.request(chat("2")).answer().raw


def test_an_idle_connection_that_the_engine_closes_costs_no_request(engines, gateway):
    """A24, shortened: the engine closes idle connections in the moment of the next request."""
    def script(exchange):
        answer_politely(exchange)
        exchange.close()  # at once, without saying so in its answer

    engine = engines(script=script)
    client = gateway(engine, sets=["server.threads=1"]).client()
    for i in range(100):
        answer = client.request(chat(f"n{i}")).answer()
        assert answer.status == 200, i
    assert len(engine.requests) == 100
    assert len({r.body for r in engine.requests}) == 100


def test_an_engine_that_only_claims_to_be_healthy_is_taken_out(engines, gateway):
    """A18: `/health` says 200, completions never bring a byte."""
    liar, fine = engines(), engines()
    liar.script = lambda x: x.wait_gone() and x.close()
    proxy = gateway(liar, fine, sets=["routing.policy=round_robin",
                                      "timeouts.first_byte_ms=150"])
    for i in range(8):
        proxy.post(chat(f"q{i}"))
    assert {w["name"]: w["health"] for w in proxy.workers()} == {"w0": "ejected", "w1": "up"}
    before = len(liar.requests)
    assert before <= 3
    for i in range(5):
        assert proxy.post(chat(f"then {i}")).status == 200
    assert len(liar.requests) == before
