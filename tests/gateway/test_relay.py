"""What goes through the gateway goes through byte for byte."""
import json

import pytest
from harness import (DONE, Exchange, answer_politely, chat, event, text_event, usage_event,
                     wait_until)


def test_a_body_reaches_the_engine_byte_for_byte(engines, gateway):
    """A26: unknown fields, odd spacing, big integers, key order."""
    engine = engines()
    body = (b'{ "model":"m" ,"seed": 9007199254740993,"return_token_ids":true,\n'
            b'"chat_template_kwargs":{"x":[1,2.50,1e3]},"guided_json":{"b":1,"a":2},'
            b'"messages":[{"role":"user","content":"\\u3042","vendor":{"k":null}}]}')
    answer = gateway(engine).post(body, path="/v1/chat/completions?a=1&b=%20x")
    assert answer.status == 200
    assert engine.requests[0].body == body
    assert engine.requests[0].target == "/v1/chat/completions?a=1&b=%20x"


def test_headers_pass_but_for_the_clients_key_and_hop_by_hop_ones(engines, gateway):
    engine = engines()
    gateway(engine).post(chat(), headers=[
        "Authorization: Bearer client-secret", "x-api-key: client-secret",
        "Cookie: s=client-secret", "Proxy-Authorization: Basic client-secret",
        "X-Custom: kept", "traceparent: 00-1-2-01", "Connection: keep-alive, x-hop", "X-Hop: 1",
        "Keep-Alive: timeout=5", "TE: trailers", "Upgrade: h2c", "X-Forwarded-For: 1.2.3.4",
        "X-Real-IP: 1.2.3.4"])
    request = engine.requests[0]
    assert b"client-secret" not in request.head
    assert request.header("x-custom") == "kept"
    assert request.header("traceparent") == "00-1-2-01"
    for name in ("x-hop", "keep-alive", "te", "upgrade", "x-forwarded-for", "x-real-ip",
                 "authorization"):
        assert request.header(name) is None, name


def test_the_engines_own_key_is_sent_and_never_shown(engines, gateway, tmp_path):
    engine = engines()
    config = tmp_path / "hidane.toml"
    config.write_text(f'[[upstream]]\nurl = "{engine.url}"\napi_key_env = "ENGINE_KEY"\n')
    proxy = gateway(args=["-c", str(config)], env={"ENGINE_KEY": "engine-secret"})
    proxy.post(chat(), headers=["Authorization: Bearer client-secret"])
    assert engine.requests[0].header("authorization") == "Bearer engine-secret"
    for path in ("/hidane/config", "/hidane/workers", "/hidane/decisions", "/metrics"):
        text = proxy.admin(path).raw
        assert b"engine-secret" not in text and b"client-secret" not in text, path
    assert b"secret" not in proxy.raw_log


def test_an_answer_carries_what_was_decided(engines, gateway):
    engine = engines()
    answer = gateway(engine).post(chat())
    assert answer.headers["x-hidane-worker"] == "w0"
    assert answer.headers["x-hidane-decision"]
    assert answer.headers["x-hidane-cached-expected"].isdigit()
    assert answer.headers["x-request-id"]


def test_a_request_id_of_the_client_is_kept(engines, gateway):
    engine = engines()
    answer = gateway(engine).post(chat(), headers=["x-request-id: abc-1"])
    assert answer.headers["x-request-id"] == "abc-1"
    assert engine.requests[0].header("x-request-id") == "abc-1"


def test_usage_is_asked_for_and_taken_out_again(engines, gateway):
    engine = engines()
    proxy = gateway(engine)
    body = chat(stream=True)
    answer = proxy.post(body)
    assert engine.requests[0].json()["stream_options"] == {"include_usage": True}
    assert answer.body == b"".join(text_event(t) for t in "abc") + DONE
    proxy.idle()
    assert proxy.metric("hidane_prompt_tokens_total") == 100
    assert proxy.metric("hidane_cached_tokens_total") == 40


def test_usage_that_the_client_asked_for_stays(engines, gateway):
    engine = engines()
    body = chat(stream=True, stream_options={"include_usage": True})
    answer = gateway(engine).post(body)
    assert engine.requests[0].body == body
    assert answer.body == b"".join(text_event(t) for t in "abc") + usage_event() + DONE


USAGE = {"prompt_tokens": 100, "completion_tokens": 3}
USAGE_VARIANTS = {
    "own_chunk": [event({"choices": [], "usage": USAGE})],
    "finish_chunk": [event({"choices": [{"finish_reason": "stop"}], "usage": USAGE})],
    "empty_delta": [event({"choices": [{"delta": {}}], "usage": USAGE})],
    "no_delta": [event({"choices": [{"finish_reason": "stop", "index": 0}], "usage": USAGE})],
    "after_finish": [event({"choices": [{"finish_reason": "stop", "delta": {}}]}),
                     event({"choices": [], "usage": USAGE})],
    "none": [],
}


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("variant", USAGE_VARIANTS)
def test_wherever_usage_stands_it_is_counted(engines, gateway, variant, asked):
    """A13."""
    tail = USAGE_VARIANTS[variant]
    sent = [text_event("a"), *tail, DONE]
    engine = engines(script=lambda x: x.stream(b"".join(sent)))
    proxy = gateway(engine)
    fields = {"stream_options": {"include_usage": True}} if asked else {}
    answer = proxy.post(chat(stream=True, **fields))
    hidden = variant in ("own_chunk", "after_finish") and not asked
    assert answer.body == b"".join(sent[:-2] + sent[-1:] if hidden else sent)
    proxy.idle()
    assert proxy.metric("hidane_prompt_tokens_total") == (0 if variant == "none" else 100)


def test_text_split_anywhere_arrives_whole(engines, gateway):
    """A11: one byte per segment, within characters, `data:`, line ends and escapes."""
    text = "안녕 👩‍👩‍👧 é"
    data = (event({"choices": [{"delta": {"content": text}}]}).replace(b"\n\n", b"\r\n\r\n")
            + b'data: {"choices":[{"delta":{"content":"\\ud83d\\ude00"}}]}\n\n' + DONE)

    def script(exchange):
        exchange.dribble(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                         b"Transfer-Encoding: chunked\r\n\r\n")
        for i in range(len(data)):
            exchange.dribble(b"1\r\n" + data[i : i + 1] + b"\r\n")
        exchange.dribble(b"0\r\n\r\n")

    engine = engines(script=script)
    assert gateway(engine).post(chat(stream=True)).body == data


def test_a_line_of_eight_mebibytes_arrives_whole(engines, gateway):
    """A12."""
    data = event({"choices": [{"delta": {"content": "x" * (8 << 20)}}]}) + DONE
    engine = engines(script=lambda x: x.stream(data, size=65536))
    answer = gateway(engine).post(chat(stream=True))
    assert answer.complete and answer.body == data


def test_each_event_is_sent_on_at_once(engines, gateway):
    def script(exchange):
        exchange.stream_head()
        exchange.chunk(text_event("first"))
        assert go_on.wait(20)
        exchange.chunk(DONE)
        exchange.end()

    import threading
    go_on = threading.Event()
    engine = engines(script=script)
    client = gateway(engine).client().request(chat(stream=True))
    client.read_until(b"first")
    go_on.set()
    assert client.answer().complete


def test_a_slow_reader_holds_the_engine_back(engines, gateway):
    """A8: what nobody reads is not buffered without bound."""
    sent = []

    def script(exchange):
        exchange.stream_head()
        block = b"data: " + b"x" * 65536 + b"\n\n"
        exchange.sock.settimeout(1.5)
        try:
            for _ in range(2048):
                exchange.chunk(block)
                sent.append(len(block))
        except (TimeoutError, OSError):
            exchange.close()

    engine = engines(script=script)
    proxy = gateway(engine)
    client = proxy.client().request(chat(stream=True))
    wait_until(lambda: engine.closed and sent)
    assert sum(sent) < 64 << 20
    client.close()


def test_framing_is_made_anew(engines, gateway):
    """A25: a chunked upload reaches the engine with one Content-Length."""
    engine = engines()
    proxy = gateway(engine)
    body = chat("chunked")
    client = proxy.client()
    client.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\n"
                b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    for i in range(0, len(body), 7):
        part = body[i : i + 7]
        client.send(b"%x\r\n%s\r\n" % (len(part), part))
    client.send(b"0\r\n\r\n")
    assert client.answer().status == 200
    assert engine.requests[0].body == body
    assert engine.requests[0].header("content-length") == str(len(body))


def test_expect_100_continue_is_answered_before_the_body(engines, gateway):
    engine = engines()
    body = chat()
    client = gateway(engine).client()
    client.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nExpect: 100-continue\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body))
    assert client.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100")
    client.pending = b""
    client.send(body)
    assert client.answer().status == 200
    assert engine.requests[0].header("expect") is None


@pytest.mark.parametrize("status", [204, 400, 404, 429, 500, 503])
def test_an_engines_answer_keeps_its_status_body_and_headers(engines, gateway, status):
    body = b"" if status == 204 else b'{"error":{"message":"no","code":"x"}}'

    def script(exchange):
        if status == 204:
            exchange.send(b"HTTP/1.1 204 No Content\r\nX-Extra: 1\r\n\r\n")
        else:
            exchange.answer(status, body, ["X-Extra: 1", "Retry-After: 7", "Server: uvicorn"])

    engine = engines(script=script)
    answer = gateway(engine).post(chat())
    assert (answer.status, answer.body) == (status, body)
    assert answer.headers["x-extra"] == "1"
    assert "server" not in answer.headers
    if status != 204:
        assert answer.headers["retry-after"] == "7"


def test_an_encoded_answer_passes_untouched(engines, gateway):
    body = b"\x1f\x8b\x08\x00 not really gzip \x00\xff"
    engine = engines(script=lambda x: x.answer(200, body, ["Content-Encoding: gzip"]))
    answer = gateway(engine).post(chat())
    assert answer.body == body and answer.headers["content-encoding"] == "gzip"


def test_unknown_v1_paths_pass_through(engines, gateway):
    engine = engines()
    proxy = gateway(engine)
    answer = proxy.post(b'{"input":"x"}', path="/v1/audio/anything?y=1")
    assert answer.status == 200
    assert engine.requests[0].target == "/v1/audio/anything?y=1"
    assert engine.requests[0].body == b'{"input":"x"}'


def test_many_requests_share_few_upstream_connections(engines, gateway):
    engine = engines()
    client = gateway(engine, sets=["server.threads=1"]).client()
    for _ in range(20):
        assert client.request(chat()).answer().status == 200
    assert len({r.connection for r in engine.requests}) == 1


def test_one_log_line_a_request_without_prompt_text(engines, gateway):
    engine = engines()
    proxy = gateway(engine)
    proxy.post(chat("canary-prompt", stream=True))
    line = wait_until(lambda: proxy.events("request.done"))[0]
    assert line["status"] == 200 and line["worker"] == "w0"
    assert line["prompt_tokens"] == 100 and line["cached_tokens"] == 40
    assert line["decision"] and line["ttft_ms"] >= 0
    assert b"canary-prompt" not in proxy.raw_log
    assert b"canary-prompt" not in proxy.admin("/hidane/decisions").raw
