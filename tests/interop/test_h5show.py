"""hdf5core over files that many programs wrote: everything that libhdf5 found in them.

The files and what libhdf5 read lie in the data folder (h5corpus/README.md). A file counts as right when all objects,
links, attributes, types, shapes and digests of values agree, and nothing is found that is not there; an object that
libhdf5 could not read must fail here too or be listed. The files that differ are in hdf5core/README.md with the reason.

SPDX-License-Identifier: MIT
"""
import collections
import hashlib
import json
import struct
import subprocess

import pytest

from harness.h5show import show

# Files of the data folder that are entirely right; it may only rise.
RIGHT = 1180

EXEMPT = ("filter 32013 ", "filter 307 ", "filter 32002 ")


def same_leaf(want, leaf, names):
    if want.get("digest_type") == "ref" or (want.get("digest_type") == "vlen" and want["digest"] is None):
        return same_references(want, leaf, names)
    if want.get("digest") is None:
        return True
    return leaf["type"] == want["digest_type"] and hashlib.sha256(leaf["raw"]).hexdigest() == want["digest"]


def referred(value):
    """The names of references in a value of the reference, in order; None where it gives none."""
    if isinstance(value, dict):
        if "ref" in value:
            yield value.get("name")
    elif isinstance(value, list):
        for inner in value:
            yield from referred(inner)


def same_references(want, leaf, names):
    if "value" not in want or leaf["type"] != "ref":
        return True
    have = [names.get(addr) for _, addr in struct.iter_unpack("<QQ", leaf["raw"])]
    expect = list(referred(want["value"]))
    return all(e is None or e == h for e, h in zip(expect, have)) and len(expect) in (0, len(have))


def same_values(want, have, names):
    if "error" in want or "digest_error" in want or want.get("digest_skipped"):
        return True
    if "error" in have:
        return exempt(have)
    leaves = have.get("data", [])
    if want.get("fields"):
        by_name = {tuple(leaf["name"]): leaf for leaf in leaves}
        return all(leaf_name(f["name"]) in by_name and same_leaf(f, by_name[leaf_name(f["name"])], names)
                   for f in want["fields"])
    if "digest_type" in want:
        return len(leaves) == 1 and same_leaf(want, leaves[0], names)
    return True


def in_memory(t):
    """Whether the reference gives a type as libhdf5 lays it out in memory: pointers have other sizes there."""
    if isinstance(t, dict):
        return t.get("vlen") is True or t.get("ref") == "std" or any(in_memory(v) for v in t.values())
    return isinstance(t, list) and any(in_memory(v) for v in t)


def plain_type(t, loose=False):
    """A type of the reference, without the sizes and offsets that memory gives it."""
    if isinstance(t, dict):
        loose = loose or in_memory(t)
        return {k: plain_type(v, loose) for k, v in t.items() if not (loose and k in ("size", "offset"))}
    if isinstance(t, list):
        return [plain_type(v, loose) for v in t]
    return t


def from_hex(text):
    return bytes.fromhex(text).decode("utf-8", "surrogateescape")


def leaf_name(names):
    return tuple(from_hex(n["hex"]) if isinstance(n, dict) else n for n in names)


def exempt(have):
    """Filters that are not asked for: the values must be refused by their names."""
    return have.get("code") == "unsupported" and have["error"].startswith(EXEMPT)


def covers(have, want):
    """want is have, or leaves fields of it out."""
    if isinstance(want, dict) and "hex" in want and isinstance(have, str):
        return have.encode("utf-8", "surrogateescape").hex() == want["hex"]
    if isinstance(want, dict) and isinstance(have, dict):
        return all(k in have and covers(have[k], v) for k, v in want.items())
    if isinstance(want, list) and isinstance(have, list):
        return len(have) == len(want) and all(covers(h, w) for h, w in zip(have, want))
    return have == want


def faults_of_object(want, have, names):
    if want["kind"] == "error":
        return
    if have["kind"] != want["kind"]:
        if not (have["kind"] == "error" and "error" in want):
            yield f"kind {have['kind']}: {have.get('error')}"
        return
    for key in ("target", "file", "same_as", "link_type", "space", "shape", "maxshape", "layout", "chunk", "nlinks"):
        no_shape = key in ("shape", "maxshape") and want.get("space") == "null"
        if key in want and have.get(key) != want[key] and not no_shape:
            yield f"{key} {have.get(key)} for {want[key]}"
    if "dtype" in want and not covers(have.get("dtype"), plain_type(want["dtype"])):
        yield f"dtype {have.get('dtype')} for {want['dtype']}"
    if "fill" in want and want["fill"] != have.get("fill"):
        yield f"fill {have.get('fill')} for {want['fill']}"
    if have["kind"] == "dataset" and [f["id"] for f in want.get("filters", [])] != have.get("filters", []):
        yield f"filters {have.get('filters')}"
    if have["kind"] == "dataset" and not same_values(want, have, names):
        yield f"values: {have.get('error', 'different')}"
    attrs = {a["name"]: a for a in have.get("attrs", [])}
    for a in want.get("attrs") or []:
        mine = attrs.pop(a["name"], None)
        if mine is None:
            yield f"attribute {a['name']} missing"
        elif "dtype" in a and not (covers(mine["dtype"], plain_type(a["dtype"])) and mine["space"] == a["space"] and
                                   (a["space"] == "null" or mine["shape"] == a["shape"])):
            yield f"attribute {a['name']}: {mine['dtype']} for {a['dtype']}"
        elif "dtype" in a and not same_values(a, mine, names):
            yield f"attribute {a['name']}: values {mine.get('error', 'different')}"
    if attrs and want.get("attrs") is not None:
        yield f"attributes {sorted(attrs)} too many"


def faults_of(root, file):
    try:
        have, done = show(root / "dev" / file["path"], timeout=60)
    except subprocess.TimeoutExpired:
        yield "timeout"
        return
    if done.returncode != 0:
        yield done.stderr.decode(errors="replace").strip()
    names = {r["addr"]: p for p, r in have.items() if r["kind"] in ("group", "dataset", "named-type")}
    for want in file["objects"]:
        path = from_hex(want["path_hex"]) if "path_hex" in want else want["path"]
        mine = have.pop(path, None)
        if mine is None:
            yield f"{path}: missing"
            continue
        for fault in faults_of_object(want, mine, names):
            yield f"{path}: {fault}"
    for path in have:
        yield f"{path}: not in the reference"


@pytest.fixture(scope="module")
def corpus(data):
    root = data("h5corpus")
    return root, [json.loads(line) for line in (root / "dev/expected.jsonl").open()]


def test_everything(corpus, report):
    root, files = corpus
    wrong = {}
    for file in files:
        faults = list(faults_of(root, file))
        if faults:
            wrong[file["path"]] = faults
    right = len(files) - len(wrong)
    report(f"foreign files: {right} of {len(files)} entirely right")
    assert right >= RIGHT, "\n".join(f"{p}: {f[0]}" for p, f in sorted(wrong.items()))


def test_damaged_files(data, report):
    """None may crash, hang or ask for a great deal of memory (the sanitizer build limits a request)."""
    files = sorted(p for p in (data("h5corpus") / "corrupt/dev").rglob("*") if p.is_file() and p.suffix != ".jsonl")
    codes = collections.Counter()
    for path in files:
        codes[show(path, str(64 << 20), timeout=60)[1].returncode] += 1
    assert sum(codes.values()) > 300 and set(codes) <= {0, 1}
    report(f"damaged foreign files: {codes[0]} opened, {codes[1]} refused")
