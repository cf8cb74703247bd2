#!/usr/bin/env python3
"""compare.py BEFORE AFTER - two files of BENCH_OUT, row by row: what has changed, what is noise

    make bench BENCH_OUT=before.json; ...; make bench BENCH_OUT=after.json
    python3 bench/compare.py before.json after.json

A row's runs fall into five parts, each with its median. It counts as changed when every part of one run is on the same
side of every part of the other (by chance alone: one in 126) and the medians differ by more than five percent. Rows
with a peer are compared by their ratio: changed when the two intervals are apart.

Last come the rows whose medians differ by ten percent or more though neither run called itself unsteady: for two runs
of one build that list should be empty. Exit code 1 when a row got slower, went missing or failed its check.

SPDX-License-Identifier: MIT
"""
import json
import pathlib
import sys

LEAST = 0.05    # a change worth a word
STEADY = 0.10   # what two runs of one build may differ by


def read(path):
    """The rows of a file by name, and its line about the machine."""
    lines = [json.loads(line) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    machine = next((line for line in lines if "machine" in line), {})
    return {line["row"]: line for line in lines if "row" in line}, machine


def unsteady(row):
    """Does the row say so itself? One of too few runs shows their number in place of a spread."""
    parts = row["parts"]
    return len(parts) < 5 or (max(parts) - min(parts)) / row["p50"] > STEADY


def verdict(a, b):
    """How a row has changed: '', 'faster', 'slower', 'one run'."""
    if "ratio" in a:
        if a["low"] <= b["high"] and b["low"] <= a["high"]:
            return ""
        return "faster" if b["ratio"] > a["ratio"] else "slower"
    if len(a["parts"]) < 5 or len(b["parts"]) < 5:
        return "few runs"
    apart = max(a["parts"]) < min(b["parts"]) or max(b["parts"]) < min(a["parts"])
    if not apart or abs(b["p50"] / a["p50"] - 1) <= LEAST:
        return ""
    return "slower" if b["p50"] > a["p50"] else "faster"


def time(ns):
    return f"{ns:.0f} ns" if ns < 1e4 else f"{ns / 1e3:.1f} us" if ns < 1e7 else f"{ns / 1e6:.2f} ms"


def line_of(name, a, b, said):
    if "ratio" in a:
        return f"{name:<34}{a['ratio']:>11.2f}x {b['ratio']:>11.2f}x  {b['ratio'] / a['ratio'] - 1:+7.1%}  {said}"
    return f"{name:<34}{time(a['p50']):>12} {time(b['p50']):>12}  {b['p50'] / a['p50'] - 1:+7.1%}  {said}"


def main():
    (before, one), (after, other) = read(sys.argv[1]), read(sys.argv[2])
    if {**one, "run": ""} != {**other, "run": ""}:
        print(f"two machines: {one}\n              {other}")
    counts, bad, restless = {}, 0, []
    for name, a in before.items():
        b = after.get(name)
        if b is None or b.get("check") is False:
            print(f"{name:<34}{'MISSING' if b is None else 'FAILED its check'}")
            bad += 1
            continue
        if "none" in a or "none" in b:
            continue
        said = verdict(a, b)
        counts[said] = counts.get(said, 0) + 1
        print(line_of(name, a, b, said))
        if "parts" in a and abs(b["p50"] / a["p50"] - 1) >= STEADY and not unsteady(a) and not unsteady(b):
            restless.append(name)
    for name in after.keys() - before.keys():
        print(f"{name:<34}new")
    print(f"{counts.get('', 0)} within noise, {counts.get('faster', 0)} faster, {counts.get('slower', 0)} slower, "
          f"{counts.get('few runs', 0)} of too few runs to tell")
    names = ", ".join(restless) or "none"
    print(f"{len(restless)} differ by {STEADY:.0%} or more and called themselves steady: {names}")
    return 1 if bad or counts.get("slower") else 0


if __name__ == "__main__":
    sys.exit(main())
