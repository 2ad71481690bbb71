"""Attack inputs, as raw bytes, against the whole gateway (list H of the reliability notes)."""
import time

import pytest
from harness import Client, chat, text_event, wait_until

BODY = chat()
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\n"
SIZED = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
ONE_CHUNK = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)


def sized(value):
    return HEAD + b"Content-Length: " + value + b"\r\n\r\n" + BODY


def field(line):
    return HEAD + SIZED + line + b"\r\n\r\n" + BODY


def coded(value):
    return HEAD + b"Transfer-Encoding: " + value + b"\r\n\r\n" + ONE_CHUNK


def chunks(data):
    return HEAD + CHUNKED + b"\r\n" + data


REFUSED = {
    "H1 length and chunked": HEAD + SIZED + CHUNKED + b"\r\n" + ONE_CHUNK,
    "H1 list of lengths": sized(b"5, 5"),
    "H1 two lengths": HEAD + SIZED + b"Content-Length: 3\r\n\r\n" + BODY,
    "H1 equal lengths": HEAD + SIZED + SIZED + b"\r\n" + BODY,
    "H1 plus": sized(b"+5"), "H1 hex": sized(b"0x5"), "H1 empty": sized(b""),
    "H1 overflow": sized(b"18446744073709551616"), "H1 negative": sized(b"-1"),
    "H2 empty name": field(b": x"), "H2 space before colon": field(b"X-Y : x"),
    "H2 folded line": field(b"X-Y: a\r\n b"), "H2 nul": field(b"X-Y: a\x00b"),
    "H2 bare cr": field(b"X-Y: a\rb"), "H2 delete": field(b"X-Y: a\x7fb"),
    "H2 no colon": field(b"XY"), "H2 many fields": field(b"\r\n".join([b"X: 1"] * 200)),
    "H2 large head": field(b"X: " + b"x" * 70_000),
    "H3 xchunked": coded(b"xchunked"), "H3 then identity": coded(b"chunked, identity"),
    "H3 twice": coded(b"chunked, chunked"), "H3 control": coded(b"\x0bchunked"),
    "H3 two fields": HEAD + CHUNKED + CHUNKED + b"\r\n" + ONE_CHUNK,
    "H3 in 1.0": (HEAD + CHUNKED + b"\r\n" + ONE_CHUNK).replace(b"HTTP/1.1", b"HTTP/1.0"),
    "H4 negative size": chunks(b"-2\r\n{}\r\n0\r\n\r\n"),
    "H4 hex prefix": chunks(b"0x5\r\nabcde\r\n0\r\n\r\n"),
    "H4 plus": chunks(b"+5\r\nabcde\r\n0\r\n\r\n"),
    "H4 underscore": chunks(b"5_0\r\nabcde\r\n0\r\n\r\n"),
    "H4 17 digits": chunks(b"11111111111111111\r\nabcde\r\n0\r\n\r\n"),
    "H4 long extension": chunks(b"5;" + b"x" * (1 << 20) + b"\r\nabcde\r\n0\r\n\r\n"),
    "H4 no line end": chunks(b"5\r\nabcdeXX0\r\n\r\n"),
    "H5 too large": sized(b"99999999999"),
    "H11 nul": HEAD.replace(b"/v1/chat", b"/v1/\x00chat") + SIZED + b"\r\n" + BODY,
    "H11 fragment": HEAD.replace(b"completions", b"completions#x") + SIZED + b"\r\n" + BODY,
    "H11 dots": HEAD.replace(b"/v1/chat", b"/v1/../hidane") + SIZED + b"\r\n" + BODY,
    "H11 encoded dots": HEAD.replace(b"/v1/chat", b"/v1/%2e%2e/x") + SIZED + b"\r\n" + BODY,
    "H11 double slash": HEAD.replace(b"/v1/chat", b"//v1/chat") + SIZED + b"\r\n" + BODY,
    "garbage": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "no version": b"POST /v1/chat/completions\r\n\r\n",
}


@pytest.fixture(scope="module")
def system():
    from harness import FakeEngine, Gateway
    engine = FakeEngine()
    proxy = Gateway(engine, sets=["limits.body_bytes_max=1048576", "timeouts.client_ms=400"])
    proxy.wait_ready()
    yield proxy, engine
    proxy.idle()
    proxy.stop()
    engine.stop()


def raw(proxy, data):
    client = proxy.client()
    try:
        client.send(data)
    except ConnectionError:
        pass  # it was refused before the end: right
    answer = client.answer()
    return client, answer


@pytest.mark.parametrize("name", REFUSED)
def test_malformed_requests_are_refused_and_the_connection_closed(system, name):
    proxy, engine = system
    engine.requests.clear()
    client, answer = raw(proxy, REFUSED[name])
    if answer.raw:  # a reset of unread bytes may overtake the answer
        assert answer.status in (400, 404, 413, 431, 501), answer.raw[:300]
        assert client.gone()
    assert not engine.requests
    assert proxy.post(BODY).status == 200


def test_h2_colliding_names_never_reach_the_engine(system):
    proxy, engine = system
    engine.requests.clear()
    _, answer = raw(proxy, field(b"Content_Length: 3"))
    assert answer.status in (200, 400)
    for request in engine.requests:
        assert b"content_length" not in request.head.lower()


def test_h4_trailers_are_dropped_or_refused(system):
    proxy, engine = system
    engine.requests.clear()
    data = ONE_CHUNK[:-2] + b"Authorization: Bearer x\r\nContent-Length: 3\r\n\r\n"
    _, answer = raw(proxy, chunks(data))
    assert answer.status in (200, 400)
    for request in engine.requests:
        assert b"Bearer x" not in request.head and request.body == BODY


def test_h5_a_chunked_body_over_the_limit_is_413(system):
    proxy, engine = system
    engine.requests.clear()
    client = proxy.client()
    client.send(HEAD + CHUNKED + b"\r\n")
    try:
        for _ in range(64):
            client.send(b"10000\r\n" + b"x" * 65536 + b"\r\n")
    except ConnectionError:
        pass
    answer = client.answer()
    assert answer.status in (413, 0)
    assert not engine.requests


def test_h6_an_expected_body_that_is_too_large_is_not_asked_for(system):
    proxy, _ = system
    client, answer = raw(proxy, HEAD + b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n")
    assert answer.status == 413
    assert client.gone()


def test_h7_a_head_that_never_ends_is_408(system):
    proxy, _ = system
    client, answer = raw(proxy, b"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nX-")
    assert answer.status in (408, 0)
    assert client.gone()


def test_h7_a_body_that_never_comes_is_408(system):
    proxy, engine = system
    engine.requests.clear()
    client, answer = raw(proxy, HEAD + SIZED + b"\r\n{")
    assert answer.status in (408, 0)
    assert client.gone()
    assert not engine.requests


def test_h11_admin_routes_are_not_on_the_data_port(system):
    proxy, engine = system
    engine.requests.clear()
    for path in ("/hidane/workers", "/hidane/config", "/metrics", "/hidane/policy", "/", "/x",
                 "/V1/chat/completions"):
        assert proxy.get(path).status == 404, path
    assert proxy.get("/v1%2fmodels").status in (400, 404)
    absolute = raw(proxy, b"GET http://evil/hidane/workers HTTP/1.1\r\nHost: g\r\n\r\n")[1]
    assert absolute.status in (400, 404)
    assert not engine.requests


def test_h13_pipelined_requests_are_answered_in_order(system):
    proxy, engine = system
    engine.requests.clear()
    client = proxy.client()
    one, two = chat("one"), chat("two")
    client.send(b"".join(HEAD + b"Content-Length: %d\r\n\r\n" % len(b) + b for b in (one, two)))
    client.read_until(b"cached_tokens")
    wait_until(lambda: len(engine.requests) == 2)
    assert [r.body for r in engine.requests] == [one, two]
    client.close()


def test_h13_a_request_inside_the_body_of_a_get_is_never_parsed(system):
    proxy, engine = system
    engine.requests.clear()
    inner = b"GET /v1/smuggled HTTP/1.1\r\nHost: g\r\n\r\n"
    client = proxy.client()
    client.send(b"GET /v1/outer HTTP/1.1\r\nHost: g\r\nContent-Length: %d\r\n\r\n" % len(inner)
                + inner)
    assert client.answer().status in (200, 400)
    time.sleep(0.05)
    assert all(r.target == "/v1/outer" for r in engine.requests)


def test_h14_a_client_that_aborts_its_upload_touches_no_engine(system):
    proxy, engine = system
    engine.requests.clear()
    client = proxy.client()
    client.send(HEAD + b"Content-Length: 100000\r\n\r\n{")
    client.reset()
    time.sleep(0.05)
    assert not engine.requests
    assert proxy.post(BODY).status == 200


def test_head_and_get_have_one_framing(system):
    proxy, _ = system
    client = proxy.client()
    client.send(b"HEAD /health HTTP/1.1\r\nHost: g\r\n\r\n")
    head = client.read_until(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200") and head.endswith(b"\r\n\r\n")
    client.pending = b""
    assert client.request(path="/health", method="GET").answer().status == 200


@pytest.mark.parametrize("body, param", [
    (b"", None), (b"[]", None), (b"{", None), (b"null", None), (b"{} x", None),
    (b'{"messages":[]}', "model"), (b'{"model":"m"}', "messages"),
    (b'{"model":3,"messages":[]}', "model"),
    (b'{"model":"m","model":"n","messages":[{"role":"user","content":"x"}]}', "model"),
    (b"[" * 100_000, None), (b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}', None),
])
def test_bodies_that_make_no_sense_are_a_400_that_names_the_field(system, body, param):
    proxy, engine = system
    engine.requests.clear()
    answer = proxy.post(body)
    assert answer.status == 400
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    if param:
        assert error["param"] == param
    assert not engine.requests
