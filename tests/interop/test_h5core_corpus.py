"""hdf5core over files that many programs wrote: the values that libhdf5 read, or a named feature that is not there.

The files and what two versions of libhdf5 found in them lie in the data folder (h5corpus/README.md). Files with a
superblock of version 2 or 3 are compared value by value as h5_dataset_read gives them, in the machine's own form;
test_h5show.py compares everything else, and all other files.

SPDX-License-Identifier: MIT
"""
import collections
import hashlib
import json
import subprocess

import pytest

from harness.cprog import environment, program, unharmed

# No object that the reference read may be called damaged, but for these: a claim of size, which the tool refuses.
CLAIMS = ("limit exceeded",)


def objects(output):
    """The records of `h5core_tool all`: (path, kind, code, text, values)."""
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        path, kind, code, n, text = output[at:end].decode("utf-8", "surrogateescape").split("\t")
        at = end + 1 + int(n)
        yield path, kind, code, text, output[end + 1:at]


def run(path):
    done = subprocess.run([program("interop/h5core_tool"), "all", path], capture_output=True, env=environment(),
                          timeout=60)
    assert unharmed(done).returncode in (0, 1), (path, done.stderr)
    return done


@pytest.fixture(scope="module")
def corpus(data):
    root = data("h5corpus")
    return root, [json.loads(line) for line in (root / "dev/expected.jsonl").open()]


def test_values(corpus, report):
    root, files = corpus
    count, faults = collections.Counter(), []
    for file in files:
        if file.get("superblock") not in (2, 3) or file.get("userblock"):
            continue
        done = run(root / "dev" / file["path"])
        if done.returncode:
            count["files refused"] += 1
            if not done.stderr.startswith(b"unsupported: "):
                faults.append((file["path"], done.stderr))
            continue
        count["files"] += 1
        expected = {o["path"]: o for o in file["objects"]}
        for path, kind, code, text, values in objects(done.stdout):
            want = expected.get(path, {})
            number = want.get("digest_type", "")[:1] == "<" and not want.get("converted")
            if code == "ok" and kind == "dataset" and number:
                equal = hashlib.sha256(values).hexdigest() == want["digest"]
                count["datasets equal" if equal else "datasets different"] += 1
                if not equal:
                    faults.append((file["path"], path, "different"))
            elif code == "ok":
                count["other objects read"] += 1
            elif code == "unsupported":
                count["objects refused"] += 1
            elif code not in CLAIMS and "error" not in want:
                faults.append((file["path"], path, code, text))
    assert not faults, faults
    assert count["datasets equal"] >= 357, count
    report(f"foreign files: {dict(count)}")


def test_damaged_files(data, report):
    """None may crash, hang or ask for a great deal of memory (the sanitizer build limits a request)."""
    files = sorted(p for p in (data("h5corpus") / "corrupt/dev").rglob("*") if p.is_file() and p.suffix != ".jsonl")
    codes = collections.Counter(run(path).returncode for path in files)
    assert sum(codes.values()) > 300
    report(f"damaged foreign files: {codes[0]} opened, {codes[1]} refused")
