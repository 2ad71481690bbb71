#!/usr/bin/env python3
"""Prints src/sim/agents_table.h from the Claude Code sessions:

    tools/agents_table.py agentic_sessions_delta.jsonl.gz > src/sim/agents_table.h

Counted are the main requests (no subagents) of sessions whose contexts all stay within CONTEXT_MAX.
"""
import gzip
import json
import sys

CONTEXT_MAX = 180_000
BLOCK = 64
SLACK = 4 * BLOCK  # between blocks and token counts
COMPACTED = 0.7  # of a prompt of at least
COMPACT_FROM = 120_000
CONTEXT_STEP = 20_000
POINTS = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1)
FEW_POINTS = (0, 0.1, 0.25, 0.5, 0.75, 0.9, 1)
THINK_MAX = 30  # longer pauses are all alike: the scenario cuts them
THINK_LAGS = range(1, 11)
STRATA = (0.1, 0.25, 0.5, 0.75, 0.9, 1)  # of sessions by their turns


def quantile(values, p):
    return values[min(len(values) - 1, int(p * len(values)))]


def table(values, points, scale=1):
    values = sorted(values)
    cells = (f"{{{p:g}, {quantile(values, p) * scale:g}}}" for p in points)
    return "{" + ", ".join(cells) + "}"


def read(path):
    for line in gzip.open(path, "rt"):
        session = json.loads(line)
        turns = [r for r in session["requests"] if r["type"] != "subagent"]
        if turns and max(r["in"] for r in turns) <= CONTEXT_MAX:
            yield (session["tool_tokens"] + session["system_tokens"]), turns


class Facts:
    """What is counted turn by turn."""

    def __init__(self):
        self.out, self.think, self.added, self.added_at = [], [], [], []
        self.edit_keep, self.edit_size = [], []
        self.compact_at, self.compact_size = [], []
        self.edits = {"head": 0, "none": 0, "most": 0}
        self.compactions = {"head": 0, "none": 0}
        self.follow_ups = self.holds_answer = 0

    def add(self, k1, turns):
        self.out += [r["out"] for r in turns]
        for last, turn in zip(turns, turns[1:]):
            self.follow_ups += 1
            self.think.append(turn.get("think_time", 0))
            if not rewrites(last, turn):
                added = turn["in"] - last["in"] - last["out"]
                self.holds_answer += added >= 0
                self.added.append(max(added, 0))
                self.added_at.append((last["in"], max(added, 0)))
            elif turn["in"] < COMPACTED * last["in"] and last["in"] >= COMPACT_FROM:
                self.compact_at.append(last["in"])
                self.compact_size.append(turn["in"] / last["in"])
                self.compactions["none" if kept(turn) < k1 - SLACK else "head"] += 1
            else:
                self.edit(k1, last, turn)

    def edit(self, k1, last, turn):
        self.edit_size.append(turn["in"] / last["in"])
        if kept(turn) > k1 + SLACK:
            self.edits["most"] += 1
            self.edit_keep.append(kept(turn) / last["in"])
        else:
            self.edits["none" if kept(turn) < k1 - SLACK else "head"] += 1


def kept(turn):
    return turn["keep"] * BLOCK


def rewrites(last, turn):
    return turn["keep"] < last["in"] // BLOCK - 1


def growth(turns):
    steps = zip(turns, turns[1:])
    return sum(turn["in"] - last["in"] for last, turn in steps if not rewrites(last, turn))


def added_by_context(added):
    """Mean of what is added after prompts of a length, over the mean of all. `added`: pairs."""
    mean = sum(a for _, a in added) / len(added)
    points = []
    for begin in range(0, CONTEXT_MAX, CONTEXT_STEP):
        part = [a for context, a in added if begin <= context < begin + CONTEXT_STEP]
        points.append(((begin + CONTEXT_STEP / 2) / CONTEXT_MAX, sum(part) / len(part) / mean))
    points = [(0, points[0][1]), *points, (1, points[-1][1])]
    return "{" + ", ".join(f"{{{p:.4g}, {value:.3g}}}" for p, value in points) + "}", len(points)


def think_correlation(sessions):
    """Of the cut think times of a session's turns, mean over some lags."""
    thinks = [[min(r.get("think_time", 0), THINK_MAX) for r in turns[1:]] for _, turns in sessions]
    every = [t for session in thinks for t in session]
    mean = sum(every) / len(every)
    variance = sum((t - mean) ** 2 for t in every) / len(every)
    lags = []
    for lag in THINK_LAGS:
        products = [(a - mean) * (b - mean) for t in thinks for a, b in zip(t, t[lag:])]
        lags.append(sum(products) / len(products) / variance)
    return sum(lags) / len(lags)


def strata(sessions):
    by_turns = sorted(sessions, key=lambda s: len(s[1]))
    begin = 0
    for share in STRATA:
        end = int(share * len(by_turns))
        part = by_turns[begin:end]
        begin = end
        first = [t[0]["in"] for _, t in part]
        fill = [growth(t) / (CONTEXT_MAX - t[0]["in"]) for _, t in part]
        yield f"    {{{share:g},\n     {{{table(first, FEW_POINTS)}}},\n     {{{table(fill, FEW_POINTS)}}}}},"


def main():
    sessions = list(read(sys.argv[1]))
    facts = Facts()
    for k1, turns in sessions:
        facts.add(k1, turns)
    by_context, n_points = added_by_context(facts.added_at)
    print(f"""\
#pragma once
#include <array>

#include "sim/random.h"

/// Statistics of {len(sessions)} Claude Code sessions with {len(facts.out)} main requests: those whose contexts
/// stay within {CONTEXT_MAX} tokens. Source: callanjfox/kv-cache-tester @94f6046d, traces
/// (Apache-2.0), delta-coded. Printed by `tools/agents_table.py agentic_sessions_delta.jsonl.gz`.
/// Of the turns that change nothing before them, {100 * facts.holds_answer / len(facts.added):.1f} % are longer by the whole answer.
namespace hidane::sim::agents {{

// clang-format off
inline constexpr uint32_t kContextMax = {CONTEXT_MAX};
using Table = std::array<Quantile, {len(POINTS)}>;
using ShortTable = std::array<Quantile, {len(FEW_POINTS)}>;

inline constexpr Table kTurns = {{{table([len(t) for _, t in sessions], POINTS)}}};
inline constexpr Table kStaticTokens = {{{table([k1 for k1, _ in sessions], POINTS)}}};
inline constexpr Table kOutputTokens = {{{table(facts.out, POINTS)}}};
inline constexpr Table kThinkSeconds = {{{table(facts.think, POINTS)}}};
/// Share of the turns before which a session pauses as it usually does: the square root of the
/// correlation of its pauses, those over {THINK_MAX} s taken as {THINK_MAX} s, {THINK_LAGS[0]} to {THINK_LAGS[-1]} turns apart.
inline constexpr double kThinkUsual = {think_correlation(sessions) ** 0.5:.3f};
/// Tokens that a turn adds beside the answer before it.
inline constexpr Table kAddedTokens = {{{table(facts.added, POINTS)}}};

/// Sessions with few turns begin longer than those with many.
struct Stratum {{
  double turns_below;       ///< quantile of kTurns
  ShortTable first_tokens;  ///< of the first prompt
  ShortTable growth;        ///< by turns that only add, over the room that the first prompt leaves
}};
inline constexpr Stratum kStrata[] = {{""")
    print("\n".join(strata(sessions)))
    print(f"""}};

/// How much more than the mean is added at a length of the prompt, as a share of kContextMax: agents
/// read much at first, and again after a compaction.
inline constexpr std::array<Quantile, {n_points}> kAddedByContext = {{{by_context}}};

/// A long history is replaced by a short one: at which prompt, and its size over that.
inline constexpr Table kCompactAt = {{{table(facts.compact_at, POINTS)}}};
inline constexpr Table kCompactSize = {{{table(facts.compact_size, POINTS)}}};
/// Compactions that keep tools and system text, or not even those.
inline constexpr std::array<double, 2> kCompactions = {{{facts.compactions['head']}, {facts.compactions['none']}}};

/// Share of the other turns that change history.
inline constexpr double kEditShare = {sum(facts.edits.values()) / (facts.follow_ups - len(facts.compact_at)):.4f};
/// Those that keep tools and system text, not even those, or more.
inline constexpr std::array<double, 3> kEdits = {{{facts.edits['head']}, {facts.edits['none']}, {facts.edits['most']}}};
inline constexpr Table kEditSize = {{{table(facts.edit_size, POINTS)}}};
/// Of the last kind: how much of the prompt before.
inline constexpr Table kEditKeep = {{{table(facts.edit_keep, POINTS)}}};
// clang-format on

}}  // namespace hidane::sim::agents""")


main()
