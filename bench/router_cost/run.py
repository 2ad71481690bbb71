#!/usr/bin/env python3
"""What a proxy costs a request: added latency, CPU and memory of hidane, nginx and HAProxy.

One stub engine, keep-alive everywhere, closed loop (wrk), one proxy thread each. Rounds are
interleaved over the targets, so that a noisy moment of the machine hits all; medians are
reported. Rows as docs and contracts name them go to build/bench/router_cost.json.

    make bench-router_cost            QUICK=1 make bench-router_cost
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def wait_port(port):
    for _ in range(500):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        time.sleep(0.01)
    raise SystemExit(f"router_cost: nothing listens on port {port}")


def body_of(size):
    """A chat request of about `size` bytes, nearly all of it tool schemas: what agents send."""
    def tool(i):
        return {"type": "function", "function": {
            "name": f"tool_{i}", "description": "Looks up records and returns those that match. " * 4,
            "parameters": {"type": "object", "required": ["query"], "properties": {
                name: {"type": "string", "description": f"The {name} to filter by, if any."}
                for name in ("query", "from", "to", "account", "currency", "limit")}}}}
    body = {"model": "m", "messages": [
        {"role": "system", "content": "You are a careful analyst. " * 20},
        {"role": "user", "content": "Which accounts moved last week?"}], "tools": []}
    while len(json.dumps(body)) < size - 900:
        body["tools"].append(tool(len(body["tools"])))
    if not body["tools"]:
        del body["tools"]
    body["messages"][0]["content"] += "x" * max(0, size - len(json.dumps(body)))
    return body


NGINX = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/nginx.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_max_body_size 0; client_body_buffer_size 1m;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/f;
  uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  keepalive_requests 1000000000;
  upstream engine {{ server 127.0.0.1:{engine}; keepalive 128; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""

HAPROXY = """
global
  nbthread 1
defaults
  mode http
  option http-no-delay
  http-reuse always
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend f
  bind 127.0.0.1:{port}
  default_backend b
backend b
  server s 127.0.0.1:{engine}
"""


class Target:
    """A proxy under test: `pid` is the process whose CPU and memory count."""

    def __init__(self, name, port, process=None):
        self.name, self.port, self.process = name, port, process
        self.pid = process.pid if process else None
        if name == "nginx":
            children = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
            self.pid = int(children.split()[0])

    def cpu_s(self):
        if self.pid is None:
            return 0.0
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def rss(self):
        if self.pid is None:
            return 0
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) * 1024


def start(stack, folder, build):
    """The stub engine and every target in front of it, stopped when `stack` closes."""
    def run(*command):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                   stderr=open(folder / "stderr.log", "ab"))
        def stop():
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(2)
            process.kill()
        stack.callback(stop)
        return process

    engine = free_port()
    run(build / "bench/router_cost/router_cost_stub", str(engine))
    wait_port(engine)
    targets = [Target("direct", engine)]

    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(dir=folder, port=port, engine=engine))
    process = run("nginx", "-p", str(folder), "-c", str(config))
    wait_port(port)
    targets.append(Target("nginx", port, process))

    port = free_port()
    config = folder / "haproxy.cfg"
    config.write_text(HAPROXY.format(port=port, engine=engine))
    process = run("haproxy", "-f", str(config))
    wait_port(port)
    targets.append(Target("haproxy", port, process))

    port = free_port()
    process = run(build / "hidane", "gateway", "--upstream", f"http://127.0.0.1:{engine}",
                  "--listen", f"127.0.0.1:{port}", "--set", "server.threads=1",
                  "--set", "admin.listen=127.0.0.1:0", "--set", "log.requests=false")
    wait_port(port)
    time.sleep(1.5)  # the first probe finds the engine and its model
    targets.append(Target("hidane", port, process))
    return targets


def measure(target, body_file, stream, connections, seconds):
    path = "/v1/chat/completions" + ("?stream" if stream else "")
    cpu = target.cpu_s()
    out = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s", "-s",
         str(HERE / "load.lua"), f"http://127.0.0.1:{target.port}{path}"],
        env={**os.environ, "BODY": str(body_file)}, capture_output=True, text=True, check=True)
    result = json.loads(re.search(r"RESULT (.*)", out.stdout).group(1))
    if result["errors"] or not result["requests"]:
        raise SystemExit(f"router_cost: {target.name}: {result['errors']} errors in "
                         f"{result['requests']} requests ({path}, {body_file.name})")
    result["cpu_s_per_1k"] = (target.cpu_s() - cpu) * 1000 / result["requests"]
    result["rss_bytes"] = target.rss()
    result["requests_per_s"] = result["requests"] / result["seconds"]
    return result


def meta(args, build):
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()
    field = lambda name: (re.search(rf"^{name}\s*: (.*)$", cpuinfo, re.M) or [None, ""])[1]
    text = lambda *c: subprocess.run(c, capture_output=True, text=True, check=False).stdout.strip()
    return {"tool": "bench/router_cost", "version": text(build / "hidane", "--version"),
            "commit": text("git", "-C", HERE, "rev-parse", "--short", "HEAD"),
            "compiler": text("c++", "-dumpfullversion"), "cpu": field("model name"),
            "cpu_flags": field("flags"), "seed": 0, "command": " ".join(sys.argv)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build/release")
    parser.add_argument("--json", type=pathlib.Path,
                        default=HERE.parents[1] / "build/bench/router_cost.json")
    parser.add_argument("--quick", action="store_true", default=os.environ.get("QUICK") == "1")
    parser.add_argument("--only", help="targets, comma separated")
    parser.add_argument("--bodies", default="2048,117000,400000")
    args = parser.parse_args()
    rounds, seconds = (1, 1) if args.quick else (5, 2)

    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        targets = start(stack, folder, args.build)
        if args.only:
            targets = [t for t in targets if t.name in ("direct", *args.only.split(","))]
        samples = {}
        cases = []
        for size in map(int, args.bodies.split(",")):
            for stream in (False, True):
                file = folder / f"{size}-{'stream' if stream else 'plain'}.json"
                file.write_text(json.dumps({**body_of(size), **({"stream": True} if stream else {})}))
                cases += [(file, size, stream, connections) for connections in (1, 64)]
        for _ in range(rounds):
            for file, size, stream, connections in cases:
                for target in targets:
                    key = (size, stream, connections, target.name)
                    samples.setdefault(key, []).append(
                        measure(target, file, stream, connections, seconds))
        report(args, samples, meta(args, args.build))


def report(args, samples, about):
    rows = []
    for (size, stream, connections, name), runs in samples.items():
        median = lambda key: statistics.median(r[key] for r in runs)
        direct = statistics.median(r["p50_us"] for r in samples[(size, stream, connections, "direct")])
        rows.append({"target": name, "body_bytes": size, "stream": stream,
                     "connections": connections, "p50_us": median("p50_us"),
                     "p99_us": median("p99_us"), "added_p50_us": median("p50_us") - direct,
                     "requests_per_s": round(median("requests_per_s"), 1),
                     "cpu_s_per_1k": round(median("cpu_s_per_1k"), 4),
                     "rss_bytes": int(median("rss_bytes"))})
    print(f"{'target':8} {'body':>7} {'stream':>6} {'conns':>5} {'p50 us':>9} {'p99 us':>9} "
          f"{'added us':>9} {'req/s':>9} {'CPU s/1k':>9} {'RSS MiB':>8}")
    for r in rows:
        print(f"{r['target']:8} {r['body_bytes']:7} {str(r['stream']).lower():>6} "
              f"{r['connections']:5} {r['p50_us']:9.0f} {r['p99_us']:9.0f} {r['added_p50_us']:9.0f} "
              f"{r['requests_per_s']:9.0f} {r['cpu_s_per_1k']:9.4f} "
              f"{r['rss_bytes'] / 2**20:8.1f}")
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps({"meta": about, "rows": rows}, indent=1) + "\n")
    print(f"rows: {args.json}")


if __name__ == "__main__":
    main()
