#!/usr/bin/env python3
"""clawhdf5.py - the followed system's own benchmark, run on this machine, beside our rows that answer it

    CLAWHDF5_DIR=checkout python3 bench/peers/clawhdf5.py

It is neither on crates.io nor on PyPI, so a checkout has to be named; cargo builds it. Its benchmark measures kernels
in memory on data of its own (no SQL, no file, one query again and again); ours are whole statements. So this is no race
between equals and the two do not run in alternation: theirs run before and after ours, and both figures are shown.

SPDX-License-Identifier: MIT
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# their benchmark -> our row
PAIRS = {
    "vector_search_1k": "exact_1k", "vector_search_10k": "exact_10k", "simd_cosine_100k": "exact_100k",
    "prenorm_search_10k": "prenorm_10k_c", "ivf_search_10k_nprobe10": "near_ivf_10k",
    "rairs_search_10k_nprobe10": "near_rairs_10k", "ivf_search_100k_nprobe10": "near_ivf_100k",
    "ivf_pq_search_100k": "near_ivfpq_100k", "bm25_search_1k": "bm25_1k_few", "bm25_search_10k": "bm25_10k_few",
    "hybrid_search_10k": "rrf_10k_few",
}
UNITS = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
LINE = re.compile(r"^(\S+)?\s+time:\s+\[([\d.]+) (\S+) ([\d.]+) (\S+) ([\d.]+) (\S+)\]")


def parse(text):
    """What Criterion printed: {name: nanoseconds}, the middle of three figures. A long name has a line of its own."""
    found, last = {}, ""
    for line in text.splitlines():
        match = LINE.match(line)
        if match:
            found[match[1] or last] = float(match[4]) * UNITS[match[5]]
        elif line and not line[0].isspace():
            last = line.split()[0]
    return found


def theirs(folder):
    done = subprocess.run(["cargo", "bench", "--quiet", "--bench", "bench", "--", "|".join(PAIRS)], cwd=folder,
                          capture_output=True, text=True, check=False)
    found = parse(done.stdout)
    if not found:
        raise SystemExit(f"FAILED: cargo bench in {folder} gave no figure: {done.stderr.strip()[-300:]}")
    return found


def ours():
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.json"
        subprocess.run(["make", "-s", "bench"], cwd=ROOT, env={**os.environ, "BENCH_OUT": str(out)}, check=True,
                       stdout=subprocess.DEVNULL)
        rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {row["row"]: row["p50"] for row in rows if "p50" in row}


def main():
    folder = os.environ.get("CLAWHDF5_DIR")
    if not folder or not shutil.which("cargo"):
        print("SKIP clawhdf5: not on crates.io and not on PyPI; CLAWHDF5_DIR names a checkout, which cargo builds")
        return
    before, mine, after = theirs(folder), ours(), theirs(folder)
    for name, row in PAIRS.items():
        if name in before and name in after and row in mine:
            low, high = sorted((before[name], after[name]))
            print(f"{row:<28} clawhdf5 ours {mine[row] / 1e3:10.1f} us  {name} {low / 1e3:10.1f} to {high / 1e3:.1f} us"
                  f"  {low / mine[row]:6.2f}x to {high / mine[row]:.2f}x")
        else:
            print(f"{row:<28} clawhdf5 no {name} to be had")


if __name__ == "__main__":
    sys.exit(main())
