#!/usr/bin/env python3
"""Prints src/sim/servegen_table.h from ServeGen's rates, `client,t_s,rate_rps,...` a window:

    tools/servegen_table.py m-large_rates.csv.gz m-small_rates.csv.gz > src/sim/servegen_table.h
"""
import collections
import csv
import gzip
import sys


def shares(path):
    """Each client's share of all requests, largest first."""
    rate = collections.Counter()
    with gzip.open(path, "rt") as rows:
        for row in csv.DictReader(rows):
            rate[row["client"]] += float(row["rate_rps"])
    total = sum(rate.values())
    return sorted((value / total for value in rate.values()), reverse=True)


def table(name, path):
    values = shares(path)
    cells = [f"{value:.4g}" for value in values]
    lines = [", ".join(cells[i : i + 10]) for i in range(0, len(cells), 10)]
    body = ",\n    ".join(lines)
    return f"inline constexpr std::array<double, {len(values)}> {name} = {{\n    {body}}};"


def main():
    print(f"""\
#pragma once
#include <array>

/// How unevenly real customers of an API send: each client's share of a model class's requests over
/// 14 days, largest first. Source: alibaba/ServeGen @f891d118 (Apache-2.0; arXiv 2505.09999), rates a
/// window of 600 s. Printed by `tools/servegen_table.py m-large_rates.csv.gz m-small_rates.csv.gz`.
namespace hidane::sim::servegen {{

// clang-format off
{table("kLarge", sys.argv[1])}

{table("kSmall", sys.argv[2])}
// clang-format on

}}  // namespace hidane::sim::servegen""")


main()
