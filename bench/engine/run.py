#!/usr/bin/env python3
"""Our engine beside llama.cpp: interleaved rounds, medians, ratio to its best weight type.

Each round runs every case of ours and of theirs, one process after the other, so that a machine
that slows down slows both. Beside each row: what the machine itself can do, measured in the same
run (a plain oneDNN GEMM, a copy through memory).
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

# bf16 weights are llama.cpp's best only where the CPU multiplies them; elsewhere they take it
# minutes at 8,000 tokens and come last.
CPU_FLAGS = Path("/proc/cpuinfo").read_text().split("flags", 1)[-1].split("\n", 1)[0].split()
BF16 = "avx512_bf16" in CPU_FLAGS or "amx_bf16" in CPU_FLAGS
WEIGHTS = ("q4_1", "q8_0", "bf16") if BF16 else ("q4_1", "q8_0")
OURS = "bf16/q4_1" if BF16 else "f32/q4_1"
CONTEXT = 128  # tokens before the first decoded one, both sides
STEPS = 64

# Of SmolLM2-135M: multiply-adds in the linear layers a token, attention's a (token, slot) pair.
LINEAR_FLOP = 2 * 106.2e6
ATTENTION_FLOP = 4 * 30 * 576
HEAD_FLOP = 2 * 28.3e6
WEIGHT_BYTES = 98e6  # of the shipped file: what one step reads at least
KV_BYTES = 23040  # a slot


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench-engine: {' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def ours(a, case, n):
    out = run([a.ours, "--threads", str(a.threads), "--cases", f"{case}:{n}", "--chunk", "512",
               "--context", str(CONTEXT), "--steps", str(STEPS), "--json"])
    return {OURS: json_lines(out)[-1]["tok_per_s"]}


def theirs_prefill(a, weights, n):
    """Best of flash attention on and off where it matters; its default elsewhere."""
    rates = {}
    for flash in ("on", "off") if n > 512 else ("auto",):
        out = run([f"{a.theirs}/bin/llama-bench", "-m", f"{a.theirs}/{weights}.gguf", "-t",
                   str(a.threads), "-p", str(n), "-n", "0", "-r", "1", "-fa", flash, "-o", "jsonl"])
        name = weights if flash == "auto" else f"{weights}, flash attention {flash}"
        rates[name] = json_lines(out)[-1]["avg_ts"]
    return rates


def theirs_decode(a, weights, batch):
    tokens = batch * (CONTEXT + STEPS)
    out = run([f"{a.theirs}/bin/llama-batched-bench", "-m", f"{a.theirs}/{weights}.gguf", "-t",
               str(a.threads), "-c", str(tokens + 256), "-b", "2048", "-ub", "512", "-npp",
               str(CONTEXT), "-ntg", str(STEPS), "-npl", str(batch), "--output-format", "jsonl"])
    return {weights: json_lines(out)[-1]["speed_tg"]}


def measure(a, cases, weights):
    """{(case, n): {engine: {weights: [tok/s of each round]}}}"""
    rates = {case: {"hidane": {}, "llama.cpp": {}} for case in cases}

    def note(case, engine, found):
        for name, rate in found.items():
            rates[case][engine].setdefault(name, []).append(rate)
            print(f"  {case[0]} {case[1]} {engine} {name}: {rate:.1f} tok/s", file=sys.stderr)

    for round_ in range(a.rounds):
        print(f"round {round_ + 1} of {a.rounds}", file=sys.stderr)
        for case in cases:
            kind, n = case
            note(case, "hidane", ours(a, kind, n))
            for w in weights:
                theirs = theirs_prefill if kind == "prefill" else theirs_decode
                note(case, "llama.cpp", theirs(a, w, n))
    return rates


def roofline(kind, n, machine):
    """tok/s that the machine's GEMM rate (prefill) or memory and GEMM (decode) would allow."""
    gemm = machine["gemm_bf16_gflops" if BF16 else "gemm_f32_gflops"] * 1e9
    if kind == "prefill":
        flop = LINEAR_FLOP + ATTENTION_FLOP * n / 2
        return gemm / flop
    step_bytes = WEIGHT_BYTES + n * (CONTEXT + STEPS / 2) * KV_BYTES
    by_bytes = n * machine["read_gbps"] * 1e9 / step_bytes
    flop = LINEAR_FLOP + HEAD_FLOP + ATTENTION_FLOP * (CONTEXT + STEPS / 2)
    return min(by_bytes, gemm / flop)


def rows_of(rates):
    rows = []
    for (kind, n), engines in rates.items():
        medians = {e: {w: statistics.median(r) for w, r in by.items()}
                   for e, by in engines.items()}
        best = max(medians["llama.cpp"].values())
        batch, tokens = (1, n) if kind == "prefill" else (n, STEPS)
        for engine, by in medians.items():
            rows += [{"engine": engine, "weights": w, "case": kind, "batch": batch,
                      "tokens": tokens, "tok_per_s": rate, "ratio_to_llama_cpp": rate / best}
                     for w, rate in by.items()]
    return rows


def print_table(rates, rows, machine):
    print(f"machine: GEMM bf16 {machine['gemm_bf16_gflops']:.0f} GFLOP/s, "
          f"f32 {machine['gemm_f32_gflops']:.0f} GFLOP/s (oneDNN), "
          f"copy {machine['copy_gbps']:.1f} GB/s, read {machine['read_gbps']:.1f} GB/s")
    print(f"{'case':<16}{'ours tok/s':>11}{'llama.cpp':>11}  {'its best':<27}{'ratio':>6}"
          f"{'roofline':>10}{'of it':>7}")
    for kind, n in rates:
        of_case = [r for r in rows if r["case"] == kind
                   and (r["tokens"] if kind == "prefill" else r["batch"]) == n]
        mine = next(r for r in of_case if r["engine"] == "hidane")
        best = max((r for r in of_case if r["engine"] != "hidane"), key=lambda r: r["tok_per_s"])
        roof = roofline(kind, n, machine)
        label = f"prefill {n}" if kind == "prefill" else f"decode batch {n}"
        print(f"{label:<16}{mine['tok_per_s']:>11.1f}{best['tok_per_s']:>11.1f}  "
              f"{best['weights']:<27}{mine['ratio_to_llama_cpp']:>6.2f}{roof:>10.0f}"
              f"{mine['tok_per_s'] / roof:>7.2f}")


def meta(a, machine):
    def line(command):
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else "unknown"

    cpu = dict(entry.split(":", 1) for entry in Path("/proc/cpuinfo").read_text().split("\n\n")[0]
               .splitlines() if ":" in entry)
    cpu = {key.strip(): value.strip() for key, value in cpu.items()}
    return {"tool": "bench/engine", "version": "0.1.0",
            "commit": line(["git", "rev-parse", "--short", "HEAD"]),
            "compiler": line(["c++", "--version"]),
            "cpu": cpu.get("model name", platform.machine()), "cpu_flags": cpu.get("flags", ""),
            "seed": 0, "command": " ".join(sys.argv), "threads": a.threads, "rounds": a.rounds,
            "load_average": os.getloadavg()[0], "machine": machine}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--roofline", required=True)
    parser.add_argument("--theirs", required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    a = parser.parse_args()
    cases = [("prefill", 512), ("prefill", 2048), ("prefill", 8000),
             ("decode", 1), ("decode", 8), ("decode", 32)]
    weights = WEIGHTS
    if a.quick:
        a.rounds = 1
        cases = [case for case in cases if case[1] not in (2048, 8000)]
    machine = json_lines(run([a.roofline, str(a.threads)]))[-1]
    rates = measure(a, cases, weights)
    rows = rows_of(rates)
    print_table(rates, rows, machine)
    Path(a.json).parent.mkdir(parents=True, exist_ok=True)
    Path(a.json).write_text(json.dumps({"meta": meta(a, machine), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
