#!/usr/bin/env python3
"""Real against simulated: `hidane up --demo-only` and `hidane sim --scenario demo`, in turn.

Each round measures what one engine computes with a core of its own while the other cores are busy
too, runs the real demo, and simulates it with those rates, the same number of requests and the
same warm-up. Which engine gets which request under round_robin depends on who reaches the gateway
first: a round's simulated row is the median of many such orders. The medians of the rounds are
compared: hit ratio within 2 points, TTFT p50 within 25 %. Exit code 1 when they are further apart.
"""
import argparse
import json
import re
import statistics
import subprocess
import sys

POLICIES = ("round_robin", "prefix")
CASES = ("prefill:512", "decode:1", "decode:4")
CONTEXT = 1000  # tokens in the KV cache before the first decoded one, as in the demo
STEPS = 24
REPEATS = 3  # a slow moment of the machine can make a batch of four look slower than one alone
ORDERS = 21
KEYS = ("hit_ratio", "ttft_p50_s", "tpot_p50_s", "requests_per_s")
HIT_POINTS, TTFT_SHARE = 2.0, 0.25


def finish(process, name):
    out, err = process.communicate()
    if process.returncode not in (0, 1) or not out:
        sys.exit(f"bench-demo: {name} failed:\n{err[-2000:]}")
    return out, err


def start(command):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def measure_rates(a):
    """Tokens/s of each case: as many processes at a time as there are cores, the median of all."""
    command = [f"{a.build}/src/model/model_bench", "--threads", "1", "--cases", ",".join(CASES),
               "--context", str(CONTEXT), "--steps", str(STEPS), "--json"]
    found = [[] for _ in CASES]
    for _ in range(REPEATS):
        for process in [start(command) for _ in range(a.cores)]:
            out, _ = finish(process, "model_bench")
            lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
            for rates, line in zip(found, lines, strict=True):
                rates.append(line["tok_per_s"])
    return [statistics.median(rates) for rates in found]


def real_demo(a):
    out, err = finish(start([a.hidane, "up", "--demo-only", "--port", "0", "--json", "-"]), "up")
    rounds = re.search(r"(\d+) warm-up requests of each agent", err)
    rows = {row["policy"]: row for row in json.loads(out)["rows"]}
    failed = sum(row["errors"] for row in rows.values())
    if failed:
        sys.exit(f"bench-demo: {failed} requests of the real demo failed: no comparison. "
                 "Is the machine busy?")
    return rows, int(rounds.group(1))


def simulate(a, rates, requests, warmups):
    command = [a.hidane, "sim", "--scenario", "demo", "--cores", str(a.cores), "--requests",
               str(requests), "--warmup-rounds", str(warmups), "--json", "-", "--cpu-rates"]
    command += [f"{rate:.3f}" for rate in rates]
    orders = []
    for order in range(1, ORDERS + 1):
        out, _ = finish(start(command + ["--demo-order", str(order)]), "sim")
        orders.append({row["policy"]: row for row in json.loads(out)["rows"]})
    return {policy: {key: statistics.median(rows[policy][key] for rows in orders) for key in KEYS}
            for policy in POLICIES}


def compare(rounds):
    """Prints the medians beside each other; True when they are close enough."""
    close = True
    print(f"\n{'':12}  {'hit':>7}  {'sim':>7}  {'TTFT p50':>9}  {'sim':>9}  {'TPOT':>9}  {'sim':>9}"
          f"  {'req/s':>6}  {'sim':>6}")
    for policy in POLICIES:
        def median(side, key):
            return statistics.median(r[side][policy][key] for r in rounds)
        hit, hit_sim = median("real", "hit_ratio"), median("sim", "hit_ratio")
        ttft, ttft_sim = median("real", "ttft_p50_s"), median("sim", "ttft_p50_s")
        tpot, tpot_sim = median("real", "tpot_p50_s"), median("sim", "tpot_p50_s")
        rps, rps_sim = median("real", "requests_per_s"), median("sim", "requests_per_s")
        print(f"{policy:12}  {hit:7.1%}  {hit_sim:7.1%}  {ttft:7.3f} s  {ttft_sim:7.3f} s"
              f"  {1e3 * tpot:6.1f} ms  {1e3 * tpot_sim:6.1f} ms  {rps:6.2f}  {rps_sim:6.2f}")
        close &= abs(hit - hit_sim) * 100 <= HIT_POINTS
        close &= abs(ttft_sim / ttft - 1) <= TTFT_SHARE
    print(f"hit within {HIT_POINTS:g} points and TTFT p50 within {TTFT_SHARE:.0%}: "
          f"{'yes' if close else 'no'}")
    return close


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json")
    a = parser.parse_args()
    a.hidane = f"{a.build}/hidane"
    rounds = []
    for i in range(a.rounds):
        rates = measure_rates(a)
        real, warmups = real_demo(a)
        sim = simulate(a, rates, real["prefix"]["requests"], warmups)
        rounds.append({"rates": rates, "real": real, "sim": sim})
        print(f"round {i + 1}/{a.rounds}: prefill {rates[0]:.0f}, decode {rates[1]:.0f} and "
              f"{rates[2]:.0f} tokens/s; " + "; ".join(
                  f"{p} TTFT {real[p]['ttft_p50_s']:.3f} s, simulated {sim[p]['ttft_p50_s']:.3f} s"
                  for p in POLICIES), flush=True)
    if a.json:
        with open(a.json, "w") as file:
            json.dump({"cores": a.cores, "rounds": rounds}, file, indent=1)
    sys.exit(0 if compare(rounds) else 1)


if __name__ == "__main__":
    main()
