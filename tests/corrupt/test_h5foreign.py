"""Files of other programs cut off, changed and broken: an error or data, never a crash, a hang or much memory.

Everything in them is read by the target of the fuzzer for whole files, whose driver ends with an error when an input
takes more than two seconds or 256 MiB. The short form takes a part of the positions; H5MEM_LONG=1 takes every one.

SPDX-License-Identifier: MIT
"""
import concurrent.futures
import json
import os
import subprocess
import time

import pytest

from harness.cprog import environment, program, unharmed

LONG = bool(os.environ.get("H5MEM_LONG"))
FILES = 50
SIZE_MAX = 40_000


@pytest.fixture(scope="module")
def good(data):
    """Small files with as many different structures as possible: each adds the most that no other has yet."""
    root = data("h5corpus") / "dev"
    features = {}
    for line in (root / "expected.jsonl").open():
        file = json.loads(line)
        if file["size"] > SIZE_MAX or file.get("members"):
            continue
        found = {("superblock", file["superblock"]), ("userblock", bool(file.get("userblock")))}
        for o in file["objects"]:
            found |= {("kind", o["kind"]), ("layout", o.get("layout")), ("class", (o.get("dtype") or {}).get("class"))}
            found |= {("raw", k, str(v)) for k, v in (o.get("raw") or {}).items()}
            found |= {("filter", f["id"]) for f in o.get("filters", [])}
        features[root / file["path"]] = found
    chosen, seen = [], set()
    while len(chosen) < FILES:
        best = max(features, key=lambda p: (len(features[p] - seen), -p.stat().st_size, str(p)))
        chosen.append(best)
        seen |= features.pop(best)
    return chosen


def feed(files, *options):
    done = subprocess.run([program("fuzz/fuzz_h5_open"), *options, *files], text=True, capture_output=True,
                          env=environment())
    assert done.returncode == 0, (done.stdout[-300:], done.stderr[-3000:])
    assert done.stdout.endswith(f"\n{len(files)} files\n")


def test_every_prefix(good, report):
    feed(good, "-p", "1" if LONG else "7")
    report(f"{len(good)} files of {sum(p.stat().st_size for p in good)} bytes cut off after every "
           f"{'byte' if LONG else '7th byte'}")


def test_flipped_bits(good):
    feed(good, "-f", "1" if LONG else "7")


def one(path):
    """Seconds, MiB and the exit code of h5show_tool for one file."""
    before = time.monotonic()
    done = subprocess.Popen([program("interop/h5show_tool"), path, str(4 << 20)], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, env=environment())
    said = done.stderr.read()
    _, status, used = os.wait4(done.pid, 0)
    done.returncode = os.waitstatus_to_exitcode(status)
    done.stderr.close()
    unharmed(subprocess.CompletedProcess(path, done.returncode, None, said))
    return path, time.monotonic() - before, used.ru_maxrss / 1024, done.returncode


def test_damaged_files(data, report):
    files = sorted(p for p in (data("h5corpus") / "corrupt/dev").rglob("*") if p.is_file() and p.suffix != ".jsonl")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(one, files))
    slowest, largest = max(results, key=lambda r: r[1]), max(results, key=lambda r: r[2])
    assert len(results) > 300 and {r[3] for r in results} <= {0, 1}
    assert slowest[1] < 2 or os.environ.get("H5MEM_SAN"), slowest
    assert largest[2] < 256 or os.environ.get("H5MEM_SAN"), largest
    opened = sum(r[3] == 0 for r in results)
    report(f"damaged foreign files: {opened} opened, {len(results) - opened} refused, "
           f"none took more than {slowest[1]:.1f} s and {largest[2]:.0f} MiB")
